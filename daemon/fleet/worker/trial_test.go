package worker

import "testing"

// TestBreakerAlone drives a breaker without its worker: the effect of each end of a request.
func TestBreakerAlone(t *testing.T) {
	var b breaker
	want := func(at float64, state BreakerState, lets bool) {
		t.Helper()
		if b.state(at) != state || b.lets(at) != lets {
			t.Errorf("at %v s: %v, lets %v; want %v, %v", at, b.state(at), b.lets(at), state, lets)
		}
	}
	failed := &proofs[Failed]
	for i := range failed.requests {
		if got := b.count(failed, 1, 9, false); got != (i == failed.requests-1) {
			t.Errorf("failure %d opens it: %v", i+1, got)
		}
	}
	b.open(failing, "500", 1, 10, 2)
	want(11.9, Open, false)
	want(12, HalfOpen, true)
	if b.count(failed, 1, 12, false) {
		t.Error("a failure of a request of before opens an open breaker")
	}
	trial, other := &request{at: 12}, &request{at: 12}
	b.sent(trial)
	b.sent(other)
	want(12, HalfOpen, false)
	if b.ended(other) || !b.ended(trial) || b.ended(trial) {
		t.Error("the first request after the back-off is not the only trial")
	}
	if !b.count(failed, 1, 12, true) {
		t.Error("a trial that fails does not open it again")
	}
	b.open(failing, "500", 2, 12, 2)
	want(15.9, Open, false) // twice as long
	b.shut()
	want(13, Closed, true)
	b.good(13, false)
	b.open(failing, "500", 3, 20, 2)
	want(27.9, Open, false) // a good answer in the slow start does not shorten it
	b.shut()
	b.good(28, true)
	b.open(failing, "500", 4, 30, 2)
	want(32, HalfOpen, true)
	b.reset()
	b.open(leaving, "abort", 5, 40, 2)
	want(44.9, Open, false)
	b.open(leaving, "abort", 6, 45, 2)
	want(54.9, Open, false)
	if b.standing() != Draining {
		t.Errorf("leaving is %v; want %v", b.standing(), Draining)
	}
}

// TestProvenTrial: a trial that streams for a second has proven its worker.
func TestProvenTrial(t *testing.T) {
	b := breaker{opening: opening{cause: failing}, until: 1}
	f := func(what string, first, now float64, want bool) {
		t.Helper()
		b.trial = &request{at: 1, first: first}
		if got := b.hasProven(now); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	f("no byte yet", 0, 60, false)
	f("half a second", 2, 2.5, false)
	f("a second", 2, 3, true)
	b.trial = nil
	if b.hasProven(60) {
		t.Error("no trial has proven something")
	}
}
