package worker

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

// fewest chooses like a strategy that compares requests in flight, and then those ever sent.
func fewest(rows []abi.Row) int {
	best := 0
	for i := range rows {
		r, b := &rows[i], &rows[best]
		if r.InFlight < b.InFlight || r.InFlight == b.InFlight && r.Sent < b.Sent {
			best = i
		}
	}
	return best
}

// load sends rate requests a second from one time to another. Each lasts so long and goes where fewest chooses. load
// returns for each second how many of them w got. open keeps the requests that are still running, by their end.
type load struct {
	p    *Pool
	rate int
	last float64
	open []*Ticket
	ends []float64
}

func (l *load) run(t *testing.T, from, to float64, w *Worker) (got []int) {
	t.Helper()
	for i := range int((to - from) * float64(l.rate)) {
		at := from + float64(i)/float64(l.rate)
		for len(l.open) > 0 && l.ends[0] <= at {
			l.open[0].End(l.p.after(at), judge.Outcome{Kind: judge.Answered})
			l.open, l.ends = l.open[1:], l.ends[1:]
		}
		rows, ws, standing := l.p.Snapshot(Query{At: l.p.after(at)}, nil, nil)
		if standing != Ready {
			t.Fatalf("at %v: %v", at, standing)
		}
		chosen := ws[fewest(rows)]
		k, ok := l.p.TryBegin(chosen, Dispatch{PromptTokens: 100}, l.p.after(at))
		if !ok {
			t.Fatalf("at %v: %s refused what its row offered", at, chosen.id)
		}
		k.FirstByte(l.p.after(at + .001))
		l.open, l.ends = append(l.open, k), append(l.ends, at+l.last)
		if i%l.rate == 0 {
			got = append(got, 0)
		}
		if chosen == w {
			got[len(got)-1]++
		}
	}
	return got
}

// TestNoBurst: one of ten workers comes back while the others are full of streams of 20 s. A strategy that compares
// loads would send it everything. It gets at most twice its share in any second, and is as full as the others in the
// end.
func TestNoBurst(t *testing.T) {
	p := upPool(t, 10)
	w := p.fleet.workers[3]
	l := &load{p: p, rate: 100, last: 20}
	l.run(t, 1, 60, w)
	p.kill(int(w.slot), 60)
	l.run(t, 60, 85, w)
	p.heal(int(w.slot), 85)
	got := l.run(t, 85, 145, w)
	sum := 0
	for i, n := range got {
		if n > 2*10+2 {
			t.Errorf("in second %d it gets %d of 100; its share is 10", i, n)
		}
		if i < 10 {
			sum += n
		}
	}
	if sum > 100 || sum < 30 {
		t.Errorf("in its slow start it gets %d of 1,000; want less than its share of 100, and not next to nothing", sum)
	}
	if p.fleet.workers[3].slowStart.Holds() {
		t.Error("it has caught up and is held still")
	}
	if n := w.flight.n; n < 195 || n > 205 {
		t.Errorf("a minute later it has %d in flight; want 200 as all", n)
	}
	t.Logf("of 100 a second it got %v", got)
}

// TestNoBurstOfTies: at light load all workers tie, and the one that was away has the fewest requests ever sent.
func TestNoBurstOfTies(t *testing.T) {
	p := upPool(t, 10)
	w := p.fleet.workers[3]
	l := &load{p: p, rate: 50, last: .001}
	l.run(t, 1, 20, w)
	p.kill(int(w.slot), 20)
	l.run(t, 20, 120, w)
	p.heal(int(w.slot), 120)
	got := l.run(t, 120, 220, w)
	for i, n := range got {
		if n > 2*5+2 {
			t.Errorf("in second %d it gets %d of 50; its share is 5", i, n)
		}
	}
	if last := got[len(got)-1]; last < 4 || last > 6 || p.Stats(p.after(220))[3].Sent > 700 {
		t.Errorf("a hundred seconds later it gets %d of 50; want 5", last)
	}
	t.Logf("of 50 a second it got %v", got)
}

func TestUsedAtOnce(t *testing.T) {
	p := upPool(t, 10)
	p.kill(3, 2)
	p.heal(3, 4)
	rows, ws, _ := p.Snapshot(Query{At: p.after(4)}, nil, nil)
	if len(ws) != 10 || rows[3].State&abi.RowSlowStart != 0 {
		t.Fatalf("%d rows, state %d; want the returned worker among ten, as good as any", len(ws), rows[3].State)
	}
	p.TryBegin(p.fleet.workers[3], Dispatch{}, p.after(4))
	if _, ws, _ := p.Snapshot(Query{At: p.after(4)}, nil, nil); len(ws) != 9 {
		t.Errorf("%d rows after its first request; want 9", len(ws))
	}
	rows, ws, _ = p.Snapshot(Query{Bound: "w3", At: p.after(4)}, nil, nil)
	if len(ws) != 10 || rows[3].State&abi.RowSlowStart == 0 {
		t.Errorf("bound to it: %d rows, state %d; want 10, in slow start", len(ws), rows[3].State)
	}
}

// TestAllSlow: when all workers are in slow start, or no other is there, none is left out.
func TestAllSlow(t *testing.T) {
	p := upPool(t, 2)
	for _, w := range p.fleet.workers {
		p.kill(int(w.slot), 1)
		p.heal(int(w.slot), 2)
	}
	l := &load{p: p, rate: 100, last: 1}
	got := l.run(t, 2, 8, p.fleet.workers[0])
	for i, n := range got {
		if n < 40 || n > 60 {
			t.Errorf("second %d: the first of two gets %d of 100; want half", i, n)
		}
	}
}

func TestHeavyWorkerIsNotHeldForEver(t *testing.T) {
	s := specs(2)
	s[0].Weight = 100
	p := New(Config{Workers: s, SlowStart: time.Second}, start)
	for _, w := range p.fleet.workers {
		p.heal(int(w.slot), 0)
	}
	w := p.fleet.workers[0]
	p.kill(int(w.slot), 1)
	p.heal(int(w.slot), 2)
	at := 3.0
	for i := 0; w.slowStart.Holds(); i++ {
		at += .1
		_, ws, _ := p.Snapshot(Query{At: p.after(at)}, nil, nil)
		k, _ := p.TryBegin(ws[0], Dispatch{}, p.after(at))
		k.End(p.after(at), judge.Outcome{Kind: judge.Answered})
		if at > 3.2+60 {
			t.Fatal("held after its time")
		}
	}
}

// TestJoins: a worker joins from when it comes, while others have had requests, until it has caught up. Where a whole
// fleet begins, none does.
func TestJoins(t *testing.T) {
	p := upPool(t, 2)
	w := p.fleet.workers[1]
	joins := func(at float64) bool {
		rows, ws, _ := p.Snapshot(Query{At: p.after(at), Bound: w.id}, nil, nil)
		for i := range ws {
			if ws[i] == w {
				return rows[i].Joins()
			}
		}
		t.Fatalf("at %v: %d rows without the worker's", at, len(rows))
		return false
	}
	f := func(what string, at float64, want bool) {
		t.Helper()
		if got := joins(at); got != want {
			t.Errorf("%s: joins %v; want %v", what, got, want)
		}
	}
	f("the fleet begins", 1, false)
	p.kill(int(w.slot), 2)
	p.heal(int(w.slot), 3)
	f("back before anybody got a request", 3, false)
	l := &load{p: p, rate: 100, last: 1}
	l.run(t, 4, 100, w)
	f("long up", 100, false)
	p.kill(int(w.slot), 100)
	l.run(t, 100, 110, w)
	p.heal(int(w.slot), 110)
	f("back", 110, true)
	l.run(t, 110, 115, w)
	f("in its slow start", 115, true)
	l.run(t, 115, 190, w)
	f("it has caught up", 190, false)
}
