package worker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// all lists the flight both ways, and checks that they agree.
func (f *flight) all(t *testing.T) (forth []*request) {
	t.Helper()
	var back []*request
	tokens := 0
	for r := f.First; r != nil; r = r.inFlight.Next {
		forth = append(forth, r)
		tokens += r.tokens
	}
	for r := f.Last; r != nil; r = r.inFlight.Prev {
		back = append(back, r)
	}
	slices.Reverse(back)
	if !slices.Equal(forth, back) || f.n != len(forth) || f.tokens != tokens {
		t.Fatalf("%d one way, %d the other, counted %d with %d of %d tokens", len(forth), len(back), f.n, f.tokens, tokens)
	}
	return forth
}

// TestFlightIsAList compares a flight with a slice, under requests that end in any order.
func TestFlightIsAList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var f flight
	var want []*request
	for range 2000 {
		if len(want) == 0 || rng.IntN(2) == 0 {
			r := &request{tokens: rng.IntN(100)}
			f.push(r)
			want = append(want, r)
		} else {
			i := rng.IntN(len(want))
			f.remove(want[i])
			want = slices.Delete(want, i, i+1)
		}
		if got := f.all(t); !slices.Equal(got, want) {
			t.Fatalf("%d in flight; want %d", len(got), len(want))
		}
	}
}

type quiet struct{}

func (quiet) GiveUp(Loss) {}

func TestOverdue(t *testing.T) {
	const never = -1
	var f flight
	var h judge.Health
	h.Fall(judge.Silent, sec(10))
	add := func(at, flow float64, held bool) {
		r := requestAt(at, 0)
		h.Flow(&r.Request, sec(flow))
		if held {
			r.holder = quiet{}
		}
		f.push(r)
	}
	expect := func(now float64, late int, next float64) {
		t.Helper()
		got, due := f.overdue(&h, 20*time.Second, sec(now), func(*request) bool { return true })
		if len(got) != late {
			t.Errorf("at %v s: %d are late; want %d", now, len(got), late)
		}
		if (due == 0) != (next == never) {
			t.Errorf("at %v s: look again at %v; want %v", now, due, next)
		} else if next != never {
			near(t, "when to look again", due.Seconds(), next, 1e-9)
		}
	}
	expect(50, 0, never)
	add(1, 0, false) // waits on
	add(11, 0, true) // sent after the fall
	expect(50, 0, never)
	add(5, 0, true)
	add(6, 18, true)
	expect(29.9, 0, 30)
	expect(30, 1, 31)
	expect(37.5, 1, 38)
	expect(38, 2, 39)
}
