package prefix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// compare calls every lookup of a namespace for a chain, and compares the answers with right, the oracle.
func compare(n *Namespace, chain []uint64, slots []uint32, right func(slot uint32) uint32) error {
	out := make([]uint32, len(slots))
	n.Match(chain, slots, out)
	best, most := n.Best(chain)
	if most != slices.Max(out) || most > 0 && right(best) != most {
		return fmt.Errorf("the best is worker %d with %d of %d; want one of %v with %v", best, most, len(chain), slots, out)
	}
	for i, s := range slots {
		if want, one := right(s), n.MatchOne(chain, s); out[i] != want || one != want {
			return fmt.Errorf("worker %d matches %d of %d, alone %d; want %d", s, out[i], len(chain), one, want)
		}
	}
	return nil
}

// play runs n random operations on an index and the oracle and returns the number of answers compared.
func play(t testing.TB, seed uint64, n int) int {
	const workers = 5
	r := rand.New(rand.NewPCG(seed, 1))
	capacity := 20 + r.IntN(300)
	tick := int64(0)
	x := New(Config{Workers: workers, Capacity: capacity, Now: func() int64 { return tick }})
	o := newOracle(workers, capacity)
	names := []string{"m", "m:a", "m:a#salt"}
	var earlier [][]byte
	slots := []uint32{3, 0, 4, 1, 2}
	compared := 0
	for i := range n {
		if r.IntN(4) == 0 { // a coarse clock: many touches at the same time
			tick++
		}
		slot, name := uint32(r.IntN(workers)), names[r.IntN(len(names))]
		chain := chained(contents(r, &earlier))
		switch k := r.IntN(1000); {
		case k < 3:
			x.Remove(slot)
			o.remove(slot)
		case k < 10:
			o.capacity[slot] = 1 + r.IntN(400)
			x.SetCapacity(slot, o.capacity[slot])
			o.trim(slot)
		case k < 12:
			x.drop("m:a#salt")
			o.drop("m:a#salt")
		case k < 500:
			x.Namespace(name).Touch(slot, chain)
			o.touch(name, slot, chain, tick)
		default:
			compared += len(slots)
			if err := compare(x.Namespace(name), chain, slots, func(s uint32) uint32 { return o.match(name, s, chain) }); err != nil {
				t.Fatalf("seed %d op %d: %v", seed, i, err)
			}
		}
		if i%37 == 0 {
			if err := x.check(); err != nil {
				t.Fatalf("seed %d op %d: %v", seed, i, err)
			}
		}
		for s := range uint32(workers) {
			if got := x.Worker(s); got.Blocks != len(o.held[s]) {
				t.Fatalf("seed %d op %d: worker %d holds %d; want %d", seed, i, s, got.Blocks, len(o.held[s]))
			} else if want := time.Duration(tick - o.tail(s)); got.HasTail && i%5 == 0 && got.TailAge != want {
				t.Fatalf("seed %d op %d: worker %d has a tail of age %d; want %d", seed, i, s, got.TailAge, want)
			}
		}
	}
	for s := range uint32(workers) {
		x.Remove(s)
	}
	if got := x.Stats(); got.Nodes != 0 || got.Blocks != 0 {
		t.Fatalf("seed %d: %+v after all workers were removed; want nothing", seed, got)
	}
	if err := x.check(); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return compared
}

func TestOracle(t *testing.T) {
	seeds, ops := 40, 5000
	if testing.Short() {
		seeds = 4
	}
	compared := 0
	for seed := range seeds {
		compared += play(t, uint64(seed), ops)
	}
	t.Logf("%d operations, %d answers compared, 0 wrong", seeds*ops, compared)
}
