package linked

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type thing struct{ in Links[thing] }

func in(x *thing) *Links[thing] { return &x.in }

// TestList plays random calls against a slice.
func TestList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var l List[thing]
	var want []*thing
	for range 2000 {
		switch at := rnd.IntN(len(want) + 1); {
		case rnd.IntN(9) < 4 && at < len(want):
			l.Remove(want[at], in)
			if want[at].in != (Links[thing]{}) {
				t.Fatal("what was removed has neighbours")
			}
			want = slices.Delete(want, at, at+1)
		case at == len(want):
			x := new(thing)
			l.Add(x, in)
			want = append(want, x)
		default:
			x := new(thing)
			var behind *thing
			if at > 0 {
				behind = want[at-1]
			}
			l.Insert(x, behind, in)
			want = slices.Insert(want, at, x)
		}
		var forth, back []*thing
		for x := l.First; x != nil; x = x.in.Next {
			forth = append(forth, x)
		}
		for x := l.Last; x != nil; x = x.in.Prev {
			back = append(back, x)
		}
		slices.Reverse(back)
		if !slices.Equal(forth, want) || !slices.Equal(back, want) {
			t.Fatalf("%d things one way, %d the other; want %d", len(forth), len(back), len(want))
		}
	}
}
