package judge

import (
	"testing"
	"time"
)

// TestBreakerAlone drives a breaker without its worker: the effect of each end of a request.
func TestBreakerAlone(t *testing.T) {
	var b breaker
	want := func(at float64, state BreakerState, lets bool) {
		t.Helper()
		if b.state(sec(at)) != state || b.lets(sec(at)) != lets {
			t.Errorf("at %v s: %v, lets %v; want %v, %v", at, b.state(sec(at)), b.lets(sec(at)), state, lets)
		}
	}
	failed := &proofs[Failed]
	for i := range failed.requests {
		if got := b.count(failed, 1, sec(9), false); got != (i == failed.requests-1) {
			t.Errorf("failure %d opens it: %v", i+1, got)
		}
	}
	b.open(Failing, "500", 1, sec(10), 2*time.Second)
	want(11.9, Open, false)
	want(12, HalfOpen, true)
	if b.count(failed, failed.requests, sec(12), false) {
		t.Error("failures of requests of before open an open breaker")
	}
	trial, other := &Request{Sent: sec(12)}, &Request{Sent: sec(12)}
	b.sent(trial)
	b.sent(other)
	want(12, HalfOpen, false)
	if b.ended(other) || !b.ended(trial) || b.ended(trial) {
		t.Error("the first request after the back-off is not the only trial")
	}
	if !b.count(failed, 1, sec(12), true) {
		t.Error("a trial that fails does not open it again")
	}
	b.open(Failing, "500", 2, sec(12), 2*time.Second)
	want(15.9, Open, false) // twice as long
	b.shut()
	want(13, Closed, true)
	b.good(sec(13), false)
	b.open(Failing, "500", 3, sec(20), 2*time.Second)
	want(27.9, Open, false) // a good answer in the slow start does not shorten it
	b.shut()
	b.good(sec(28), true)
	b.open(Failing, "500", 4, sec(30), 2*time.Second)
	want(32, HalfOpen, true)
	b.reset()
	b.open(GoingAway, "abort", 5, sec(40), 2*time.Second)
	want(44.9, Open, false)
	b.open(GoingAway, "abort", 6, sec(45), 2*time.Second)
	want(54.9, Open, false)
}

// TestProvenTrial: a trial that streams for a second has proven its worker.
func TestProvenTrial(t *testing.T) {
	b := breaker{opening: opening{cause: Failing}, until: sec(1)}
	f := func(what string, first, now float64, want bool) {
		t.Helper()
		b.trial = &Request{Sent: sec(1)}
		if first > 0 {
			b.trial.First = sec(first)
		}
		if got := b.hasProven(sec(now)); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	f("no byte yet", 0, 60, false)
	f("half a second", 2, 2.5, false)
	f("a second", 2, 3, true)
	b.trial = nil
	if b.hasProven(sec(60)) {
		t.Error("no trial has proven something")
	}
}

// TestTakenBack: the sign that opened a breaker goes with its opening, and those before it stay.
func TestTakenBack(t *testing.T) {
	var b breaker
	p := &proofs[Failed]
	b.count(p, p.requests, sec(1), false)
	b.open(Failing, "500", 7, sec(1), 2*time.Second)
	b.takeBack(Failing, sec(2))
	if b.cause != NoCause || b.tallies[Failing].n != p.requests-1 {
		t.Errorf("%+v; want closed, with %d signs", b, p.requests-1)
	}
}
