package worker

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

func TestFull(t *testing.T) {
	p := New(Config{Workers: specs(2), MaxInFlight: 2}, start)
	for _, w := range p.fleet.workers {
		p.heal(int(w.slot), 0)
	}
	expect := func(want string) {
		t.Helper()
		if got := snap(p, "", 1); got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
	a, b := p.try(0, 1), p.try(0, 1)
	expect("w1")
	if p.try(0, 1) != nil {
		t.Error("a third of two got a place")
	}
	c, d := p.try(1, 1), p.try(1, 1)
	expect("full")
	if s := p.Stats(p.after(1))[1]; s.Limit != 2 || s.InFlight != 2 {
		t.Errorf("stats: %+v", s)
	}
	p.kill(0, 1)
	expect("full") // all workers that could take it are full
	for _, k := range []*Ticket{a, b, c, d} {
		k.End(p.after(1), judge.Outcome{Kind: judge.Answered})
	}
	expect("w1")
	must := p.send(1, Dispatch{}, 1)
	p.send(1, Dispatch{}, 1)
	p.send(1, Dispatch{}, 1) // no other worker can answer these
	expect("full")
	must.End(p.after(1), judge.Outcome{})
	expect("full")
	p.Configure(Config{})
	expect("w1")
}

// TestLimitRaces: several requests that saw the same free places never get more than there are.
func TestLimitRaces(t *testing.T) {
	p := New(Config{Workers: specs(3), MaxInFlight: 4}, start)
	for _, w := range p.fleet.workers {
		p.heal(int(w.slot), 0)
	}
	var all sync.WaitGroup
	var open, got, refused atomic.Int64
	for range 32 {
		all.Go(func() {
			for i := range 100 {
				k, ok := p.TryBegin(p.fleet.workers[i%3], Dispatch{PromptTokens: 10}, p.after(1))
				if !ok {
					refused.Add(1)
					continue
				}
				if n := open.Add(1); n > 12 {
					t.Errorf("%d requests are under way; 12 have a place", n)
				}
				got.Add(1)
				for _, s := range p.Stats(p.after(1)) {
					if s.InFlight > 4 {
						t.Errorf("%s has %d in flight; the limit is 4", s.ID, s.InFlight)
					}
				}
				runtime.Gosched()
				open.Add(-1)
				k.End(p.after(1), judge.Outcome{Kind: judge.Answered})
			}
		})
	}
	all.Wait()
	t.Logf("%d got a place, %d did not", got.Load(), refused.Load())
	for _, w := range p.fleet.workers {
		if w.flight.n != 0 {
			t.Errorf("%s has %d in flight at the end", w.id, w.flight.n)
		}
	}
}

func TestPanic(t *testing.T) {
	var log bytes.Buffer
	p := New(Config{Workers: specs(4), Panic: true, MaxInFlight: 3, Log: slog.New(slog.NewTextHandler(&log, nil))}, start)
	expect := func(at float64, want string, panics uint64, lines int) {
		t.Helper()
		if got := snap(p, "", at); got != want || p.Counts().Panics != panics {
			t.Errorf("at %v s: %s, %d counted; want %s, %d", at, got, p.Counts().Panics, want, panics)
		}
		if n := strings.Count(log.String(), "no worker is up"); n != lines {
			t.Errorf("at %v s it stands %d times in the log; want %d", at, n, lines)
		}
	}
	expect(0, "panicked w0 w1 w2 w3", 1, 1) // no worker has had a health check
	for _, w := range p.fleet.workers {
		p.heal(int(w.slot), 1)
	}
	expect(1, "w0 w1 w2 w3", 1, 1)
	p.Drain("w3", true, start)
	for _, w := range p.fleet.workers {
		p.kill(int(w.slot), 2)
	}
	for n := range 5 {
		expect(2, "panicked w0 w1 w2", uint64(2+n), 2) // w3: its operator drained it
	}
	for i, k := range []*Ticket{p.try(0, 2), p.try(0, 2), p.try(0, 2), p.try(1, 2)} {
		if k == nil {
			t.Fatalf("request %d was not let through", i)
		}
		defer k.End(p.after(9), judge.Outcome{})
	}
	if p.try(0, 2) != nil {
		t.Error("the limit does not hold in a panic")
	}
	expect(2, "panicked w1 w2", 7, 2)
	p.heal(2, 3)
	expect(3, "w2", 7, 2)
	p.kill(2, 4)
	expect(4, "panicked w1 w2", 8, 3)
	p.say(1, "other")
	p.say(2, "other")
	p.say(0, "other")
	p.say(3, "other")
	if got := snap(p, "base", 4); got != "unknown model" {
		t.Errorf("a model that nobody lists, in a panic: %s", got)
	}
}
