package route

import (
	"testing"
	"time"
)

// TestPatience: the limit of a prefill goes by what others took, and how much that varied.
func TestPatience(t *testing.T) {
	var p patience
	if n, known := p.times(); n != firstPatience || known {
		t.Errorf("at first %v times, known %v", n, known)
	}
	f := func(what string, least, most float64, samples ...float64) {
		t.Helper()
		for _, x := range samples {
			p.learn(x)
		}
		if n, known := p.times(); n < least || n > most || !known {
			t.Errorf("%s: %v times, known %v; want %v to %v", what, n, known, least, most)
		}
	}
	f("the first one", 3, 3, 1)
	f("all take what is expected", 1, 1.02, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	f("one takes twice as long", 1.9, 2.3, 2)
	f("they vary by half", 2, 3.5, .5, 1.5, .5, 1.5, .5, 1.5, .5, 1.5, .5, 1.5, .5, 1.5, .5, 1.5)
	f("a slow engine", 20, 160, 20, 20, 20)
}

// TestPrefilling: a prompt that cannot go on is waited for while nothing is known. One that was given up counts for no more
// than twice the limit.
func TestPrefilling(t *testing.T) {
	x := Prefilling{pool: new(Pool), Limit: time.Second, expected: .5, blind: true}
	x.BeSure()
	if x.Limit != blindPatience {
		t.Errorf("%v; want %v", x.Limit, blindPatience)
	}
	x.Limit, x.blind = time.Second, false
	x.BeSure()
	x.Took(time.Minute)
	if mean := x.pool.patience.mean; mean != 4 || x.Limit != time.Second {
		t.Errorf("limit %v, a mean of %v; want 4", x.Limit, mean)
	}
}
