package worker

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// TestBreakerAlone drives a breaker without its worker: the effect of each end of a request.
func TestBreakerAlone(t *testing.T) {
	var b breaker
	want := func(at float64, state BreakerState, lets bool) {
		t.Helper()
		if b.state(at) != state || b.lets(at) != lets {
			t.Errorf("at %v s: %v, lets %v; want %v, %v", at, b.state(at), b.lets(at), state, lets)
		}
	}
	failed := &proofs[judge.Failed]
	for i := range failed.requests {
		if got := b.count(failed, 1, 9, false); got != (i == failed.requests-1) {
			t.Errorf("failure %d opens it: %v", i+1, got)
		}
	}
	b.open(failing, "500", 1, 10, 2)
	want(11.9, Open, false)
	want(12, HalfOpen, true)
	if b.count(failed, failed.requests, 12, false) {
		t.Error("failures of requests of before open an open breaker")
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

// TestTakenBack: the sign that opened a breaker goes with its opening, and those before it stay.
func TestTakenBack(t *testing.T) {
	var b breaker
	p := &proofs[judge.Failed]
	b.count(p, p.requests, 1, false)
	b.open(failing, "500", 7, 1, 2)
	b.takeBack(failing, 2)
	if b.cause != none || b.tallies[failing].n != p.requests-1 {
		t.Errorf("%+v; want closed, with %d signs", b, p.requests-1)
	}
}

// TestTrialsThatClientsLeave: the next trial is put off for as long as the client waited, for the back-off at most, and
// not at all if the client had a byte.
func TestTrialsThatClientsLeave(t *testing.T) {
	f := func(what string, waited float64, begun bool, again float64) {
		t.Helper()
		p := upPool(t, 2)
		p.fail(0, proofs[judge.Failed].requests, 1, judge.Failed)
		k := p.send(0, Dispatch{Whole: true}, 3)
		if begun {
			k.FirstByte(p.after(3.1))
		}
		k.End(p.after(3+waited), judge.Outcome{Kind: judge.Canceled})
		near(t, what, p.fleet.endpoints[0].breaker.until, again, 1e-6)
	}
	f("soon", 1, false, 4+1)
	f("late", 60, false, 63+2)
	f("after a byte", 1, true, 3)
}

// TestTheTimeOfATrial: a trial is moved after five seconds, or after three of its predicted prefills, and has failed
// then. Once its worker died and came back it is no trial any more.
func TestTheTimeOfATrial(t *testing.T) {
	f := func(what string, d Dispatch, dies bool, moved bool) {
		t.Helper()
		c := new(clock)
		p := upPoolOf(Config{Workers: specs(3), After: c.after})
		p.fail(0, proofs[judge.Failed].requests, 1, judge.Failed)
		c.to(4)
		h := &asker{clock: c}
		d.Holder = h
		k := new(Ticket)
		p.Begin(k, p.fleet.workers[0], d, p.after(4))
		if dies {
			p.kill(0, 5)
		}
		p.heal(0, 6)
		c.to(9.5)
		if got := len(h.told) > 0; got != moved {
			t.Errorf("%s: moved %v; want %v", what, got, moved)
		}
		k.End(p.after(9.5), judge.Outcome{Kind: judge.Canceled})
		if got := p.fleet.endpoints[0].breaker.back; moved && got != 4 {
			t.Errorf("%s: tried again after %v s; want 4, as it has failed", what, got)
		}
	}
	f("a short prompt", Dispatch{}, false, true)
	f("a long one", Dispatch{Est: 5}, false, false)
	f("its worker is a new process", Dispatch{}, true, false)
}
