package measure

import (
	"testing"
	"time"
)

// sec returns s seconds.
func sec(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// TestPeak: the most of a number in the last two to four seconds.
func TestPeak(t *testing.T) {
	var p peak
	f := func(n int, at float64, want int) {
		t.Helper()
		p.note(n, sec(at))
		if got := p.most(); got != want {
			t.Errorf("%d at %.1f: at most %d; want %d", n, at, got, want)
		}
	}
	f(5, 0, 5)
	f(1, .5, 5)
	f(2, 2.1, 5)
	f(0, 4.2, 2)
	f(0, 4.3, 2)
	f(0, 9, 0)
	f(7, 9.1, 7)
	f(7, 30, 7)
	f(0, 31, 7)
	f(0, 40, 0)
}

func TestRing(t *testing.T) {
	var r ring
	r.note(sec(1)) // no room yet
	r.hold(3)
	for i := range 8 {
		if v, ok := r.back(min(3, i+1)); ok != (i >= 3) || ok && v != sec(float64(i-3)) {
			t.Errorf("after %d: %v, %v", i, v, ok)
		}
		r.note(sec(float64(i)))
	}
	if v, ok := r.back(1); v != sec(7) || !ok {
		t.Errorf("the newest is %v, %v; want 7", v, ok)
	}
	if _, ok := r.back(4); ok {
		t.Error("a ring of 3 gave the 4th last")
	}
}
