package worker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// prefillers makes a pool of a prefiller, w0, and of n workers that answer.
func prefillers(n int, c Config) *Pool {
	c.Workers = specs(1 + n)
	c.Workers[0].Role = Prefills
	return upPoolOf(c)
}

// TestTimeAtAPrefiller: the time that a prompt spends at a prefiller shows nothing of the worker that is to answer. From
// its arrival on the wait is that worker's own.
func TestTimeAtAPrefiller(t *testing.T) {
	d := Dispatch{PromptTokens: 2000, CachedTokens: 1999, Paired: true, Coming: true}
	f := func(what string, do func(*Ticket), took float64, hangs bool) {
		t.Helper()
		p := prefillers(4, Config{})
		for range inARow[judge.Failed] {
			s := p.send(1, d, 100)
			do(s)
			s.End(p.after(130), judge.Outcome{Kind: judge.Canceled})
		}
		want := "w0 w1 w2 w3 w4"
		if hangs {
			want = "w0 w2 w3 w4"
		}
		if got := snap(p, "", 130.1); got != want {
			t.Errorf("%s, and its clients leave: %s; want %s", what, got, want)
		}
		p = prefillers(4, Config{})
		s := p.send(1, d, 100)
		do(s)
		s.FirstByte(p.after(130))
		if w := p.fleet.workers[1]; w.ttft.Value != took || w.signs.Quick.N != 0 {
			t.Errorf("%s: the first byte took %v s, quick %+v; want %v", what, w.ttft.Value, w.signs.Quick, took)
		}
	}
	at := func(s *Ticket, cached int, away bool, at float64) {
		if !s.Arrive(cached, away, s.pool.after(at)) {
			t.Error("it has no place")
		}
	}
	f("it never comes", func(*Ticket) {}, 0, false)
	f("it comes at once", func(s *Ticket) { at(s, 1999, false, 100) }, 30, true)
	f("it comes late", func(s *Ticket) { at(s, 1999, false, 125) }, 5, false)
	f("its prompt comes never", func(s *Ticket) { at(s, 1999, true, 100) }, 0, false)
	f("its prompt comes late", func(s *Ticket) { at(s, 1999, true, 100); s.Computed(s.pool.after(125)) }, 5, false)
	f("its prompt came before", func(s *Ticket) { s.Computed(s.pool.after(99)); at(s, 1999, true, 100) }, 30, true)
}

// TestAPromptThatNobodyComputes: the worker that answers is known to compute the prompt itself once that is known, and
// until then to have nothing to do for it.
func TestAPromptThatNobodyComputes(t *testing.T) {
	p := prefillers(1, Config{})
	s := p.send(1, Dispatch{PromptTokens: 15000, CachedTokens: 14999, Paired: true, Coming: true}, 100)
	waits := func(at, want float64) {
		t.Helper()
		near(t, "W", p.rows(at)[1].Wait, want, 1e-3)
	}
	waits(105, 0)
	s.Arrive(0, false, p.after(110))
	waits(110, 1.2288)
	s.FirstByte(p.after(111))
	waits(111, 0)
}

// TestACallerMayFindItsWorkerDown: a request whose worker fell while a prefiller had its prompt goes to another one, if there
// is one.
func TestACallerMayFindItsWorkerDown(t *testing.T) {
	for n, want := range map[int]bool{1: true, 2: false} {
		p := prefillers(n, Config{})
		s := p.send(1, Dispatch{Paired: true, Coming: true, Tried: 1}, 100) // a prefiller has no label here: it is tried
		p.hush(1, 101)
		p.hush(1, 103)
		if got := s.Arrive(0, false, p.after(104)); got != want {
			t.Errorf("of %d that answer one is silent: arrives %v; want %v", n, got, want)
		}
	}
}

// TestAPrefillerThatMissesAPrompt is set aside, and gets one prompt at a time until one is computed. That is logged once.
func TestAPrefillerThatMissesAPrompt(t *testing.T) {
	var log bytes.Buffer
	var w watcher
	p := prefillers(1, Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Watcher: &w})
	w.calls = nil
	offered := func(at float64, want int) {
		t.Helper()
		rows, _, _ := p.Snapshot(Query{At: p.after(at), Spare: true, Half: true}, nil, nil)
		if len(rows) != want {
			t.Errorf("at %v: %d workers; want %d", at, len(rows), want)
		}
		if rows, _, _ := p.Snapshot(Query{At: p.after(at)}, nil, nil); len(rows) != 2 {
			t.Errorf("at %v: a request that is served alone has %d workers", at, len(rows))
		}
	}
	leg := func(at float64) *Ticket { return p.send(0, Dispatch{PromptTokens: 2000, Paired: true}, at) }
	a, b := leg(100), leg(100.1)
	leg(100.4).Overdue(p.after(100.6), 500*time.Millisecond) // another worker had it before
	offered(100.6, 2)
	a.Overdue(p.after(100.5), 500*time.Millisecond)
	b.Overdue(p.after(100.6), 500*time.Millisecond)
	w.want(t, "check 1", "check 1")
	offered(101, 1)
	s := p.Stats(p.after(101))[0]
	if s.State != Ejected || s.Up || s.Breaker != judge.Open || !strings.Contains(s.Why, "0.5 s") || s.Ejections != 1 {
		t.Errorf("%v (%s), up %v, breaker %v, %d ejections", s.State, s.Why, s.Up, s.Breaker, s.Ejections)
	}
	offered(102.5, 2)
	c := leg(102.5) // the trial
	offered(103, 1)
	c.Overdue(p.after(103.1), 500*time.Millisecond)
	offered(107, 1)
	offered(107.2, 2)
	a.FirstByte(p.after(108))
	offered(108, 2)
	if s := p.Stats(p.after(108))[0]; s.State != Ready || s.Why != "" || s.Breaker != judge.Closed || !s.Up {
		t.Errorf("it has answered: %v (%s), up %v, breaker %v", s.State, s.Why, s.Up, s.Breaker)
	}
	for text, n := range map[string]int{"gets no prompts": 1, "paired again": 1, "level=WARN": 1} {
		if strings.Count(log.String(), text) != n {
			t.Errorf("want %q %d times: %s", text, n, &log)
		}
	}
}

// TestLostHandovers: whom they are blamed on gets no half of a request, and all that it does alone.
func TestLostHandovers(t *testing.T) {
	p := prefillers(2, Config{})
	of := p.fleet.workers
	for range 3 {
		p.HandoverLost(of[0], of[1], p.after(100))
		p.HandedOver(of[0], of[2], p.after(100), p.after(100.1))
	}
	if !p.IsUnpaired(of[1], p.after(101)) || p.IsUnpaired(of[0], p.after(101)) {
		t.Error("want w1 unpaired, and w0 not")
	}
	s := p.Stats(p.after(101))[1]
	if s.State != Ready || !s.Up || !strings.Contains(s.Why, "could not load") || s.Breaker != judge.Closed {
		t.Errorf("%v (%s), up %v, breaker %v; want up, with a reason", s.State, s.Why, s.Up, s.Breaker)
	}
	p.send(1, Dispatch{Paired: true}, 103)
	if !p.IsUnpaired(of[1], p.after(103)) {
		t.Error("more than one trial")
	}
	p.HandedOver(of[0], of[1], p.after(103), p.after(104))
	if p.IsUnpaired(of[1], p.after(104)) || p.Stats(p.after(104))[1].Why != "" {
		t.Error("a hand-over that succeeds ends it")
	}
}

// TestDrainBeforeItIsAdded: a worker that is drained while the pool does not use it is added for that, and is drained
// then, unless it has been put back meanwhile. One that nobody knows is not drained.
func TestDrainBeforeItIsAdded(t *testing.T) {
	all := specs(3)
	p := upPoolOf(Config{Workers: all[:1], Outside: func(w Want) bool { return w.ID != "w9" }})
	f := func(id string, on, want bool) {
		t.Helper()
		if got := p.Drain(id, on, p.after(1)); got != want {
			t.Errorf("drain of %s, %t: %t; want %t", id, on, got, want)
		}
	}
	f("w9", true, false)
	f("w1", false, false)
	f("w1", true, true)
	f("w2", true, true)
	f("w2", false, true)
	f("w2", false, false)
	p.Update(all, p.after(2))
	for i, want := range []bool{false, true, false} {
		if s := p.Stats(p.after(2))[i]; s.Drained != want {
			t.Errorf("%s is drained: %t; want %t", s.ID, s.Drained, want)
		}
	}
}
