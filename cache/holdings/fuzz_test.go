package holdings

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// FuzzEvents plays any sequence of events, of workers that lie: a hash stands for any content, parents make no sense, sizes do
// not fit. Nothing may break what the index promises, and nothing may be left when the workers are gone.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{0x00, 1, 2, 3, 0x10, 3, 4, 5, 0x21, 1, 0x30, 9, 0x45, 2, 0x50})
	f.Add([]byte{0x04, 1, 1, 1, 0x0c, 7, 8, 9, 0x14, 8, 1, 1, 0x60, 0x70, 0x0a, 200, 1, 2})
	f.Add([]byte{0x10, 9, 8, 7, 0x00, 9, 9, 9, 0x28, 9, 0x28, 9, 0x21, 8, 0x90, 1, 0xa0, 0x05, 4, 4})
	f.Fuzz(func(t *testing.T, in []byte) {
		now := time.Unix(0, 0)
		c := Config{Workers: 3, Blocks: 40, Orphans: 12, Planes: 4, Predictions: 20, Chain: 120}
		c.Now = func() time.Time { return now }
		x := New(c)
		next := func() (b byte) {
			if len(in) > 0 {
				b = in[0]
				in = in[1:]
			}
			return b
		}
		slots := []uint32{0, 1, Shared, 5}
		var last Ticket
		for steps := 0; len(in) > 0 && steps < 300; steps++ {
			op := next()
			slot := slots[op&3]
			w := x.Writer(slot)
			space := [][2]string{{"", ""}, {"a", ""}, {"", "s"}, {"b", "s"}}[op>>2&3]
			ids := make([]uint32, next()%32)
			for i := range ids {
				ids[i] = uint32(i / (1 + int(op&7)))
			}
			var q Query
			q.Reset(space[0], space[1], ids)
			switch op >> 4 {
			case 0, 1, 2, 3, 4, 5:
				w.Store(fuzzed(op, space, ids, next))
			case 6, 7, 8:
				w.Remove(blocks.Medium(op>>2&3), []uint64{uint64(next()), uint64(op >> 2), uint64(next()) << 56})
			case 9:
				w.Clear()
			case 10:
				x.Forget(slot)
			case 11, 12:
				last = x.Predict(slot, &q)
			case 13:
				x.Withdraw(last - Ticket(op&3))
			case 14:
				now = now.Add(time.Duration(next()) * 100 * time.Millisecond)
			case 15:
				w.SetLive(op&1 == 0)
			}
			if err := x.check(); err != nil {
				t.Fatalf("step %d: %v", steps, err)
			}
			out := make([]Held, len(slots))
			x.Match(&q, slots, out)
			for i, h := range out {
				if h.GPU > h.Local || h.Local > h.All || h.All > 0 && int(h.All) >= len(ids) {
					t.Fatalf("step %d: slot %d has %+v of %d ids", steps, slots[i], h, len(ids))
				}
			}
		}
		for _, slot := range slots {
			x.Forget(slot)
		}
		if x.dir.total.Load() != 0 || x.dir.n != 0 {
			t.Fatalf("%d blocks and %d planes are left", x.dir.total.Load(), x.dir.n)
		}
	})
}

// fuzzed makes a store of what comes.
func fuzzed(op byte, space [2]string, ids []uint32, next func() byte) *blocks.Stored {
	size := 1 + int(op>>4&1)
	s := &blocks.Stored{Adapter: space[0], Salt: space[1], BlockSize: size, Tokens: ids, Medium: blocks.Medium(op >> 5 & 1)}
	for range len(ids) / size {
		h := uint64(next())
		if h&1 != 0 {
			h <<= 56
		}
		s.Hashes = append(s.Hashes, h)
	}
	switch op >> 4 {
	case 1, 2, 5:
		s.HasParent = true
		s.Parent = uint64(next())
	case 4:
		s.Tokens = nil
	}
	return s
}
