package worker

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// TestTrialsThatClientsLeave: the next trial is put off for as long as the client waited, for the back-off at most, and
// not at all if the client had a byte.
func TestTrialsThatClientsLeave(t *testing.T) {
	f := func(what string, waited float64, begun bool, again float64) {
		t.Helper()
		p := upPool(t, 2)
		p.fail(0, inARow[judge.Failed], 1, judge.Failed)
		k := p.send(0, Dispatch{Whole: true}, 3)
		if begun {
			k.FirstByte(p.after(3.1))
		}
		k.End(p.after(3+waited), judge.Outcome{Kind: judge.Canceled})
		near(t, what, p.trialAt(0, 2.9), again, 1e-6)
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
		p.fail(0, inARow[judge.Failed], 1, judge.Failed)
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
		if got := p.fleet.endpoints[0].health.BackOff(); moved && got != 4*time.Second {
			t.Errorf("%s: tried again after %v; want 4 s, as it has failed", what, got)
		}
	}
	f("a short prompt", Dispatch{}, false, true)
	f("a long one", Dispatch{Est: 5}, false, false)
	f("its worker is a new process", Dispatch{}, true, false)
}
