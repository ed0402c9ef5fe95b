package prefix

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// copyOf makes an index of the chains that Each returns.
func copyOf(x *Index, capacity int) *Index {
	now := x.now()
	y := New(Config{Workers: len(x.workers), Capacity: capacity, Now: func() int64 { return now }})
	for slot := range x.workers {
		x.Each(uint32(slot), func(space uint64, chain []uint64, ago time.Duration) bool {
			y.Space(space).TouchAgo(uint32(slot), chain, ago)
			return true
		})
	}
	return y
}

// An index made of what Each returns holds the same chains and evicts in the same order.
func TestEachFindsAll(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		capacity := 5 + r.IntN(60)
		all, chains := someTouches(r)
		now := int64(0)
		x := New(Config{Workers: 3, Capacity: capacity, Now: func() int64 { return now }})
		for _, a := range all {
			now = a.at
			x.Space(1+a.chain[0]%2).Touch(a.slot, a.chain)
		}
		now += 1000
		for keep := capacity; keep > 0; keep -= 1 + capacity/4 {
			y := copyOf(x, capacity)
			if err := y.check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for slot := range uint32(3) {
				x.SetCapacity(slot, keep) // both evict: what is left shows the order
				y.SetCapacity(slot, keep)
				for _, chain := range chains {
					want := x.Space(1+chain[0]%2).MatchOne(chain, slot)
					if got := y.Space(1+chain[0]%2).MatchOne(chain, slot); got != want {
						t.Fatalf("seed %d, worker %d, keep %d: %d blocks of %v; want %d", seed, slot, keep, got, chain, want)
					}
				}
			}
		}
	}
}

// Each reads a large index in many parts, ends when f returns false, and skips namespaces without a number.
func TestEachInParts(t *testing.T) {
	x := New(Config{Workers: 2, Capacity: 1 << 20})
	for i := range uint64(5000) {
		x.Space(9).Touch(1, []uint64{1, 2, 100 + i, 100_000 + i})
	}
	x.Namespace("a name of more than eight").Touch(1, []uint64{5})
	seen := map[uint64]bool{}
	x.Each(1, func(space uint64, chain []uint64, ago time.Duration) bool {
		if space != 9 || len(chain) != 4 || !slices.Equal(chain[:2], []uint64{1, 2}) || ago < 0 {
			t.Fatalf("space %d, chain %v, %v ago", space, chain, ago)
		}
		seen[chain[3]] = true
		return true
	})
	if len(seen) != 5000 {
		t.Errorf("%d chains; want 5000", len(seen))
	}
	n := 0
	x.Each(1, func(uint64, []uint64, time.Duration) bool { n++; return n < 300 })
	if n != 300 {
		t.Errorf("%d calls; want 300", n)
	}
	x.Each(0, func(uint64, []uint64, time.Duration) bool { t.Error("worker 0 holds nothing"); return true })
	x.Each(7, func(uint64, []uint64, time.Duration) bool { t.Error("there is no worker 7"); return true })
}

// Each runs beside touches, evictions and removals. It returns every chain that is not touched or evicted meanwhile.
func TestEachBesideChanges(t *testing.T) {
	x := New(Config{Workers: 1, Capacity: 1 << 16})
	for i := range uint64(2000) {
		x.Space(1).Touch(0, []uint64{1000 + i, 2})
	}
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		r := rand.New(rand.NewPCG(1, 1))
		for i := uint64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
				x.Space(2).Touch(0, []uint64{r.Uint64N(50), i % 100})
				x.Space(1).Touch(0, []uint64{1000 + 2*r.Uint64N(100), 2})
			}
		}
	})
	for range 20 {
		seen := map[uint64]bool{}
		x.Each(0, func(space uint64, chain []uint64, _ time.Duration) bool {
			if space == 1 {
				seen[chain[0]] = true
			}
			return true
		})
		for i := uint64(1); i < 2000; i += 2 {
			if !seen[1000+i] {
				t.Fatalf("chain %d is missing", i)
			}
		}
	}
	close(stop)
	changing.Wait()
}

// A cursor keeps its place although the record that it read last was touched or evicted meanwhile.
func TestCursorLosesItsPlace(t *testing.T) {
	for name, change := range map[string]func(x *Index, chain []uint64){
		"touched": func(x *Index, chain []uint64) { x.Space(1).Touch(0, chain) },
		"gone":    func(x *Index, chain []uint64) { x.Remove(0) },
		"cleared": func(x *Index, chain []uint64) { x.Clear() },
	} {
		t.Run(name, func(t *testing.T) {
			now := int64(0)
			x := New(Config{Workers: 1, Now: func() int64 { now++; return now }})
			for i := range uint64(1000) {
				x.Space(1).Touch(0, []uint64{1000 + i, 2})
			}
			c := cursor{slot: 0, until: -1}
			seen := map[uint64]int{}
			for more := true; more; {
				more = c.read(&x.forest)
				for _, h := range c.found {
					seen[c.blocks[h.from]]++
				}
				if len(c.found) > 0 && (name == "touched" || len(seen) == readRecords) {
					change(x, slices.Clone(c.blocks[c.found[len(c.found)-1].from:]))
				}
			}
			want := 1000
			if name != "touched" {
				want = readRecords
			}
			if len(seen) != want {
				t.Errorf("%d chains seen; want %d", len(seen), want)
			}
			for first, n := range seen {
				if n != 1 {
					t.Fatalf("chain %d was seen %d times", first, n)
				}
			}
		})
	}
}
