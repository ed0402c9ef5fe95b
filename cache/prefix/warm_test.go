package prefix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Two indexes get the same touches, and one of them warms up for some before each: both hold the same.
func TestWarmChangesNothing(t *testing.T) {
	const workers = 3
	now := int64(0)
	var both [2]*Index
	for i := range both {
		both[i] = New(Config{Workers: workers, Capacity: 60, MaxNamespaces: 2, Now: func() int64 { return now }})
	}
	r := rand.New(rand.NewPCG(1, 2))
	var earlier [][]byte
	forgotten := both[0].Namespace("forgotten")
	for step := range 4000 {
		now++
		var all []Coming
		for range r.IntN(2 * Together) {
			space := both[0].Namespace(fmt.Sprint(r.IntN(2)))
			if r.IntN(9) == 0 {
				space = forgotten
			}
			all = append(all, Coming{Space: space, Slot: uint32(r.IntN(workers + 1)), Chain: chained(contents(r, &earlier))})
		}
		both[0].Warm(all)
		chain, slot, name := chained(contents(r, &earlier)), uint32(r.IntN(workers)), fmt.Sprint(r.IntN(2))
		for _, x := range both {
			x.Namespace(name).Touch(slot, chain)
		}
		if err := both[0].check(); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		var held [2][workers]uint32
		for i, x := range both {
			x.Namespace(name).Match(chained(earlier[step%len(earlier)]), []uint32{0, 1, 2}, held[i][:])
		}
		if a, b := both[0].Stats(), both[1].Stats(); a.Blocks != b.Blocks || a.Evicted != b.Evicted || held[0] != held[1] {
			t.Fatalf("step %d: warmed %+v %v, not warmed %+v %v", step, a, held[0], b, held[1])
		}
	}
}

// A curve that warms up before it notes learns the same as one that does not.
func TestReuseWarmChangesNothing(t *testing.T) {
	one, other := NewReuse(200, nil), NewReuse(200, nil)
	r := rand.New(rand.NewPCG(3, 4))
	var earlier [][]byte
	for range 1000 {
		chain := chained(contents(r, &earlier))
		one.Warm([]Coming{{Chain: chain}, {Chain: chained(contents(r, &earlier))}, {}})
		one.Note(chain, 32)
		other.Note(chain, 32)
	}
	if a, b := one.Gaps(), other.Gaps(); a.New != b.New || !slices.Equal(a.Again[1:], b.Again[1:]) {
		t.Errorf("warmed %v, not warmed %v", a, b)
	}
}
