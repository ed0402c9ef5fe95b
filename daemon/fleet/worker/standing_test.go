package worker

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// TestNearer: a fleet has the standing of its worker nearest to Ready, in any order of the workers.
func TestNearer(t *testing.T) {
	f := func(want Standing, workers ...Standing) {
		t.Helper()
		forth, back := Lacking, Lacking
		for i := range workers {
			forth = forth.nearer(workers[i])
			back = back.nearer(workers[len(workers)-1-i])
		}
		if forth != want || back != want {
			t.Errorf("%v: %v, backwards %v; want %v", workers, forth, back, want)
		}
	}
	f(Lacking)
	f(Lacking, Lacking, Lacking)
	f(Down, Lacking, Down)
	f(Down, Ejected)
	f(Down, Draining, Lacking, Ejected)
	f(Starting, Down, Starting, Ejected)
	f(Full, Starting, Full, Down)
	f(TooShort, Down, TooShort, Starting)
	f(Full, TooShort, Full)
	f(Held, Full, Held)
	f(Panicked, Down, Panicked, Full)
	f(Ready, Held, Panicked, Ready, Down)
}

// TestStandingWords: scripts read these words in /api/v1 and in the log.
func TestStandingWords(t *testing.T) {
	for s, want := range map[Standing]string{Ready: "up", Gone: "gone", Starting: "starting", Down: "down",
		Ejected: "ejected", Draining: "draining", Lacking: "lacks the model",
		Full: "full", Held: "slow start", Panicked: "panic", TooShort: "too short"} {
		if s.String() != want {
			t.Errorf("%d is %q; want %q", s, s, want)
		}
	}
	for s, want := range map[judge.BreakerState]string{judge.Closed: "closed", judge.HalfOpen: "half-open", judge.Open: "open"} {
		if s.String() != want {
			t.Errorf("%d is %q; want %q", s, s, want)
		}
	}
	if judge.Closed != 0 || judge.HalfOpen != 1 || judge.Open != 2 {
		t.Error("the numbers of the breaker's metric have changed")
	}
}

// TestStandingOfOne follows one worker through everything that keeps a request from it.
func TestStandingOfOne(t *testing.T) {
	p := New(Config{Workers: specs(4), MaxInFlight: 1}, start)
	at := 1.0
	want := func(shown, bound Standing) {
		t.Helper()
		if got := p.Stats(p.after(at))[0].State; got != shown {
			t.Errorf("shown as %v; want %v", got, shown)
		}
		if got := p.Standing("w0", "tiny", nil, p.after(at)); got != bound {
			t.Errorf("for a request bound to it: %v; want %v", got, bound)
		}
	}
	want(Starting, Starting)
	for i := range 4 {
		p.heal(i, at)
	}
	want(Ready, Ready)
	p.say(0, "other")
	want(Ready, Lacking)
	p.say(0, "tiny")
	k := p.send(0, Dispatch{}, at)
	want(Ready, Full)
	k.End(p.after(at), judge.Outcome{})
	p.Drain("w0", true, p.after(at))
	want(Draining, Ready) // its sessions go on
	p.Drain("w0", false, p.after(at))
	p.fail(0, 5, at, judge.Failed)
	want(Ejected, Ejected)
	at = 3.5
	want(Ejected, Ready) // a trial may go there, and for people it is not up before
	p.fail(0, 1, at, judge.Leaving)
	want(Draining, Draining)
	p.kill(0, at)
	want(Down, Down)
	if got := p.Standing("nobody", "", nil, p.after(at)); got != Gone {
		t.Errorf("an id that nobody has: %v; want %v", got, Gone)
	}
}
