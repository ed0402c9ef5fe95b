package kvstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestTorture puts, gets, leases, promises, deletes and aborts at random in many goroutines. Every value read is one
// that was put under its key, whole, and in the end nothing is leased.
func TestTorture(t *testing.T) {
	for _, policy := range []string{"lru", "s3fifo", "fifo"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := open(t, Config{MaxBytes: 12 << 20, Policy: policy})
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { s.Run(ctx) })
			var wg sync.WaitGroup
			rounds := 400
			if testing.Short() {
				rounds = 200
			}
			for w := range 6 {
				wg.Go(func() { torture(t, s, rand.New(rand.NewPCG(uint64(w), 9)), rounds) })
			}
			wg.Wait()
			stop()
			running.Wait()
			if n, keys := len(s.memory.entries), len(s.Page("", "", 1000)); n != keys || n == 0 {
				t.Errorf("%d values and %d keys in the catalogue", n, keys)
			}
			for e := range s.memory.entries {
				s.Delete(e)
			}
			if n := s.Stats(); n.ReservedBytes != 0 || n.RecordBytes != 0 || n.Leases != 0 || n.Pins != 0 {
				t.Errorf("all is deleted and %+v is held", n)
			}
			if free := s.memory.arena.Space.Free(); free != s.memory.arena.Space.Size() {
				t.Errorf("%d of %d bytes are free", free, s.memory.arena.Space.Size())
			}
		})
	}
}

// torture is one client. A value's text begins with its key.
func torture(t *testing.T, s *Store, r *rand.Rand, rounds int) {
	var held []*Lease
	var texts []string
	check := func(i int) {
		n := 0
		for _, p := range held[i].Pieces() {
			for _, b := range p {
				if b != texts[i][n%len(texts[i])] {
					t.Errorf("the bytes of a lease on %q changed", texts[i])
					return
				}
				n++
			}
		}
	}
	for range rounds {
		key := fmt.Sprintf("key-%03d", r.IntN(200))
		switch r.IntN(10) {
		case 0, 1, 2:
			size := []int{8, 28, 5000, 65536, 100_000, 1 << 20}[r.IntN(6)]
			f, err := s.Reserve(key, int64(size))
			if err != nil {
				continue
			}
			fill(f.Pieces(), key+string(rune('a'+r.IntN(26))))
			if r.IntN(8) == 0 {
				f.Abort()
				continue
			}
			f.Commit(Terms{Life: time.Duration(r.IntN(3)) * time.Millisecond, When: When(r.IntN(3))})
		case 3:
			s.Exists(key, alice, time.Duration(r.IntN(5))*time.Millisecond)
		case 4:
			s.Delete(key)
		case 5:
			if l := s.Get(t.Context(), key, alice); l != nil {
				text := make([]byte, 8)
				copy(text, l.Pieces()[0])
				held, texts = append(held, l), append(texts, string(text))
			}
		default:
			if text, _ := get(s, key, alice, 8); text != "" && text[:7] != key {
				t.Errorf("%s has the value %q", key, text)
			}
		}
		for len(held) > 3 {
			check(0)
			held[0].Release()
			held, texts = held[1:], texts[1:]
		}
	}
	for i, l := range held {
		check(i)
		l.Release()
	}
}
