package prefix

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// kids and a map have the same children, in a table that grows, shrinks and overflows, whatever the hashes.
func TestKidsAreThoseOfAMap(t *testing.T) {
	defer func(n int) { mostSlots = n }(mostSlots)
	for _, c := range []struct {
		name string
		most int
		hash func(i uint64) uint64
	}{
		{"spread", 1 << 16, mix},
		{"in a row", 1 << 16, func(i uint64) uint64 { return i }},
		{"with an overflow", 32, mix},
		{"at one place", 1 << 16, func(i uint64) uint64 { return i << 60 }},
	} {
		mostSlots = c.most
		r := rand.New(rand.NewPCG(1, 4))
		var k kids
		want := map[uint64]*node{}
		for step := range 60_000 {
			first := c.hash(r.Uint64N(300))
			if wave := step / 4000 % 2; r.IntN(10) < 3+4*wave { // it grows for a while, then it shrinks
				n := &node{run: []uint64{first}}
				want[first] = n
				k.put(n)
			} else if want[first] != nil {
				delete(want, first)
				k.remove(first)
			}
			if k.get(first) != want[first] {
				t.Fatalf("%s, step %d: the child of %x is %p; want %p", c.name, step, first, k.get(first), want[first])
			}
			if step%100 != 0 {
				continue
			}
			all := slices.Collect(k.all)
			if len(all) != len(want) || k.none() != (len(want) == 0) || (k.many != nil) != (len(want) > 1) {
				t.Fatalf("%s, step %d: %d children, table %v; want %d", c.name, step, len(all), k.many != nil, len(want))
			}
			for _, n := range all {
				if want[n.run[0]] != n || k.get(n.run[0]) != n {
					t.Fatalf("%s, step %d: the child of %x is not found", c.name, step, n.run[0])
				}
			}
		}
	}
}
