package judge

import (
	"testing"
	"time"
)

// TestMovable: which requests may leave an engine that stood still at 10 s, by pages that are 1 s apart.
func TestMovable(t *testing.T) {
	f := func(what string, r *Request, asleep, trial, want bool) { // asleep = since 20 s
		t.Helper()
		g, h := Engine{moved: sec(10), slept: sec(20), asleep: asleep}, new(Health)
		if asleep {
			g.moved = sec(19) // up to then it worked
		}
		if trial {
			h.breaker.trial = r
		}
		if got := g.MayMove(h, r, time.Second); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	f("it came before the engine stopped", &Request{Sent: sec(10.5)}, false, false, false)
	f("it came after", &Request{Sent: sec(11.5)}, false, false, true)
	f("it is the trial", &Request{Sent: sec(11.5)}, false, true, false)
	f("its answer has begun", &Request{Sent: sec(11.5), First: sec(12)}, false, false, false)
	f("the engine sleeps", &Request{Sent: sec(17.5)}, true, false, true)
	f("it sleeps, and the request had waited for long", &Request{Sent: sec(16.5)}, true, false, false)
	f("it sleeps, and the answer has begun", &Request{Sent: sec(18.5), First: sec(19)}, true, false, false)
}
