package holdings

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// world is an index beside its oracles, and what the made up engines do.
type world struct {
	t       testing.TB
	r       *rand.Rand
	x       *Index
	now     time.Time
	writers []*Writer // the last one is the shared tier's
	oracles []*oracle
	epochs  []uint64
	prompts [][]uint32
	names   map[string]uint64 // content -> a small number of its own
	tickets []Ticket
	matches int
}

var spaces = [][2]string{{"", ""}, {"a", ""}, {"a", "b"}, {"a#b", ""}, {"", "b"}, {"a%23b", ""}}

func newWorld(t testing.TB, r *rand.Rand, workers int, c Config) *world {
	w := &world{t: t, r: r, now: time.Unix(0, 0), names: map[string]uint64{}}
	c.Now = func() time.Time { return w.now }
	w.x = New(c)
	for i := range workers + 1 {
		w.writers = append(w.writers, w.x.Writer(w.slot(i, workers)))
		w.oracles = append(w.oracles, newOracle(c.Blocks, c.Orphans))
		w.epochs = append(w.epochs, 0)
	}
	return w
}

func (w *world) slot(i, workers int) uint32 {
	if i == workers {
		return Shared
	}
	return uint32(i)
}

func (w *world) workers() int { return len(w.writers) - 1 }

// prompt is made of few letters, and mostly the copy of an earlier one with another end.
func (w *world) prompt() []uint32 {
	var ids []uint32
	if len(w.prompts) > 0 && w.r.IntN(8) > 0 {
		old := w.prompts[w.r.IntN(len(w.prompts))]
		ids = append(ids, old[:w.r.IntN(len(old)+1)]...)
		if w.r.IntN(3) == 0 {
			ids = append(ids[:0], old...)
		}
	}
	for n := w.r.IntN(16); n > 0 && len(ids) < 90; n-- {
		ids = append(ids, uint32(w.r.IntN(3)))
	}
	if len(w.prompts) < 30 {
		w.prompts = append(w.prompts, ids)
	} else {
		w.prompts[w.r.IntN(30)] = ids
	}
	return ids
}

// hash is the engine's own for a content: small numbers shifted about, so that many share their low or their high bits.
// An engine has two for some contents, as one before 0.17 has for a salted prompt.
func (w *world) hash(i int, space [2]string, size int, ids []uint32) uint64 {
	key := fmt.Sprintf("%d %q %d %q", w.epochs[i], space, size, pathOf(ids))
	if w.r.IntN(12) == 0 {
		key += " twin"
	}
	if w.names[key] == 0 {
		w.names[key] = uint64(len(w.names) + 1)
	}
	n := w.names[key]
	switch n % 3 {
	case 0:
		return n << 44
	case 1:
		return n
	}
	return n<<44 | n
}

func (w *world) space() [2]string {
	if w.r.IntN(3) > 0 {
		return spaces[0]
	}
	return spaces[w.r.IntN(len(spaces))]
}

func (w *world) size() int { return sizes[w.r.IntN(5)/4] }

// event is a store of some blocks of a prompt, wherever they begin.
func (w *world) event(i int) *blocks.Stored {
	ids, space, size := w.prompt(), w.space(), w.size()
	count := len(ids) / size
	if count == 0 {
		return &blocks.Stored{}
	}
	from := 0
	if w.r.IntN(3) == 0 {
		from = w.r.IntN(count)
	}
	to := from + 1 + w.r.IntN(count-from)
	s := &blocks.Stored{Adapter: space[0], Salt: space[1], BlockSize: size, Tokens: ids[from*size : to*size]}
	if w.r.IntN(4) == 0 {
		s.Medium = Local
	}
	if from > 0 {
		s.HasParent = true
		s.Parent = w.hash(i, space, size, ids[:from*size])
	}
	for k := from; k < to; k++ {
		s.Hashes = append(s.Hashes, w.hash(i, space, size, ids[:(k+1)*size]))
	}
	switch w.r.IntN(20) {
	case 0: // as native offloading sends it
		s.Tokens = nil
		s.BlockSize = 0
		s.Medium = Local
	case 1:
		s.Tokens = s.Tokens[1:]
	case 2: // another size than the parent's
		s.BlockSize = 5 - size
		s.Tokens = make([]uint32, len(s.Hashes)*s.BlockSize)
	}
	return s
}

// removal is of hashes that a worker holds, or waits with, and of a few that it does not.
func (w *world) removal(i int) []uint64 {
	o := w.oracles[i]
	var all, out []uint64
	for h := range o.held {
		all = append(all, h)
	}
	for _, p := range o.parked {
		all = append(all, p.s.Hashes...)
	}
	slices.Sort(all)
	all = append(all, uint64(w.r.IntN(1000)))
	for range 1 + w.r.IntN(12) {
		out = append(out, all[w.r.IntN(len(all))])
	}
	if w.r.IntN(40) == 0 {
		out = all
	}
	return out
}

func (w *world) step() {
	i := w.r.IntN(len(w.writers))
	writer, o := w.writers[i], w.oracles[i]
	switch k := w.r.IntN(100); {
	case k < 35:
		s := w.event(i)
		if i == w.workers() {
			s.Medium = GPU
		}
		writer.Store(s)
		o.store(s)
	case k < 50:
		t, hashes := blocks.Medium(w.r.IntN(2)), w.removal(i)
		writer.Remove(t, hashes)
		if i == w.workers() {
			t = GPU
		}
		o.remove(t, hashes)
	case k < 52 && w.r.IntN(4) == 0:
		writer.Clear()
		o.clear()
		if w.r.IntN(2) == 0 {
			w.epochs[i]++ // it has restarted, and has other hashes
		}
	case k < 53 && w.r.IntN(4) == 0:
		slot := w.slot(i, w.workers())
		w.x.Forget(slot)
		writer.Store(w.event(i)) // to nothing
		writer.SetLive(true)
		w.writers[i] = w.x.Writer(slot)
		o.clear()
		o.live = false
		o.size = 0
	case k < 55:
		o.live = !o.live
		writer.SetLive(o.live)
	case k < 62 && i < w.workers():
		w.predict(uint32(i), o)
	case k < 64 && len(w.tickets) > 0:
		t := w.tickets[w.r.IntN(len(w.tickets))]
		w.x.Withdraw(t)
		for _, o := range w.oracles {
			delete(o.predicted, t)
		}
	case k < 66:
		w.now = w.now.Add(time.Duration(w.r.IntN(4000)) * time.Millisecond)
	default:
		w.match()
	}
}

func (w *world) predict(slot uint32, o *oracle) {
	ids, space := w.prompt(), w.space()
	var q Query
	q.Reset(space[0], space[1], ids)
	if t := w.x.Predict(slot, &q); t != 0 {
		w.tickets = append(w.tickets, t)
		o.predict(t, w.now.Add(5*time.Second), space[0]+"\x00"+space[1], ids)
	}
}

func (w *world) match() {
	ids, space := w.prompt(), w.space()
	var q Query
	q.Reset(space[0], space[1], ids)
	var slots []uint32
	for i := range w.workers() + 2 { // two of which nobody has ever written
		slots = append(slots, uint32(i))
	}
	w.r.Shuffle(len(slots), func(i, j int) { slots[i], slots[j] = slots[j], slots[i] })
	out := make([]Held, len(slots))
	w.x.Match(&q, slots, out)
	for k, slot := range slots {
		shared := w.oracles[w.workers()]
		o := newOracle(0, 0)
		if int(slot) < w.workers() {
			o = w.oracles[slot]
		} else if int(slot) >= len(*w.x.workers.Load()) {
			shared = newOracle(0, 0)
		}
		w.matches++
		if want := o.match(shared, w.now, space[0]+"\x00"+space[1], ids); out[k] != want {
			w.t.Fatalf("worker %d matches %+v of %d ids in %q; the oracle says %+v", slot, out[k], len(ids), space, want)
		}
	}
}

func TestOracle(t *testing.T) {
	steps := 8000
	if testing.Short() || raceEnabled {
		steps = 800
	}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := Config{Blocks: 1 << 20, Orphans: 40}
			if seed == 1 {
				c = Config{Blocks: 60, Orphans: 1 << 20}
			}
			w := newWorld(t, rand.New(rand.NewPCG(seed, 1)), 4, c)
			for i := range steps {
				w.step()
				if err := w.x.check(); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
			}
			for i := range w.workers() {
				t.Logf("worker %d: %+v", i, w.x.Worker(uint32(i)))
			}
			t.Logf("%d answers compared, 0 wrong", w.matches)
			for i := range w.writers {
				w.x.Forget(w.slot(i, w.workers()))
			}
			if w.x.Chain() != 0 || w.x.dir.n != 0 {
				t.Fatalf("%d blocks and %d planes are left after all workers are gone", w.x.Chain(), w.x.dir.n)
			}
		})
	}
}

// TestPath: a worker's own hashes of the leading blocks of a prompt, up to the first that it lacks, also where another
// worker's chain goes on elsewhere.
func TestPath(t *testing.T) {
	x := New(Config{})
	ids := func(from, to int) (all []uint32) {
		for i := from; i < to; i++ {
			all = append(all, uint32(i))
		}
		return all
	}
	store := func(slot uint32, first, n int, parent uint64, tokens []uint32) {
		s := blocks.Stored{Tokens: tokens, BlockSize: 4, Parent: parent, HasParent: parent != 0}
		for i := range n {
			s.Hashes = append(s.Hashes, uint64(first+i))
		}
		x.Writer(slot).Store(&s)
	}
	store(1, 101, 4, 0, ids(0, 16))
	store(2, 201, 2, 0, ids(0, 8))
	store(2, 250, 2, 202, ids(50, 58)) // another continuation
	store(1, 150, 1, 104, ids(16, 20))
	var q Query
	q.Reset("", "", ids(0, 21))
	path := func(slot uint32, want ...uint64) {
		t.Helper()
		if got, size := x.Path(slot, &q); !slices.Equal(got, want) || size != 4 {
			t.Errorf("slot %d: %v in blocks of %d; want %v", slot, got, size, want)
		}
	}
	path(1, 101, 102, 103, 104, 150)
	path(2, 201, 202)
	x.Writer(1).Remove(GPU, []uint64{103})
	path(1, 101, 102)
	q.Reset("", "salt", ids(0, 21))
	path(1)
}
