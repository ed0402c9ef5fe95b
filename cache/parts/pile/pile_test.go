package pile

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type thing struct{ rank, at int }

func (x *thing) Before(other *thing) bool { return x.rank < other.rank }
func (x *thing) Place() *int              { return &x.at }

// TestPile plays random calls against a slice.
func TestPile(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var p Pile[*thing]
	var all []*thing
	for i := range 2000 {
		at := rnd.IntN(len(all) + 1)
		switch {
		case at == len(all) || rnd.IntN(3) == 0:
			x := &thing{rank: i * 7919 % 2003}
			all = append(all, x)
			p.Put(x)
		case rnd.IntN(2) == 0:
			all[at].rank = -i
			p.Put(all[at])
		default:
			x := all[at]
			all = slices.Delete(all, at, at+1)
			p.Drop(x)
			p.Drop(x) // no effect
			if x.at != 0 {
				t.Fatalf("what was dropped has place %d", x.at)
			}
		}
		if len(p) != len(all) {
			t.Fatalf("%d things; want %d", len(p), len(all))
		}
		for _, x := range all {
			if p[x.at-1] != x || x.rank < p[0].rank {
				t.Fatalf("the thing of rank %d is not at its place, or not the first", x.rank)
			}
		}
	}
}
