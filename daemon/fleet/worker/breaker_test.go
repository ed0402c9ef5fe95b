package worker

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// fail ends n requests to worker i with an outcome of that kind.
func (p *Pool) fail(i, n int, at float64, kind judge.Kind) {
	for range n {
		p.send(i, Dispatch{}, at).End(p.after(at), judge.Outcome{Kind: kind})
	}
}

func TestEjection(t *testing.T) {
	p := upPool(t, 4)
	expect := func(at float64, want string) {
		t.Helper()
		if got := snap(p, "", at); got != want {
			t.Errorf("at %v s: %s; want %s", at, got, want)
		}
	}
	p.fail(0, 4, 1, judge.Failed)
	p.fail(0, 1, 1, judge.Answered)
	p.fail(0, 4, 1, judge.Broken)
	p.fail(0, 9, 1, judge.Canceled)
	expect(1, "w0 w1 w2 w3") // never five in a row
	p.fail(0, 1, 1, judge.Failed)
	expect(1, "w1 w2 w3")
	expect(2.99, "w1 w2 w3")
	expect(3.01, "w0 w1 w2 w3")
	rows := p.rows(4)
	if len(rows) != 4 {
		t.Error("the trial's turn waits for something")
	}
	p.fail(0, 1, 3.5, judge.Answered)
	if s := p.Stats(p.after(3.6)); !s[0].SlowStart || s[1].SlowStart {
		t.Error("slow start after an ejection is not the ejected worker's alone")
	}
	p.fail(0, 1, 3.8, judge.Answered)
	p.fail(0, 5, 4, judge.Failed) // in its slow start again, one good answer or not: twice as long
	expect(7.99, "w1 w2 w3")
	expect(8.01, "w0 w1 w2 w3")
	p.fail(0, 1, 9, judge.Answered)  // the trial
	p.fail(0, 1, 30, judge.Answered) // good after its slow start: forgiven
	p.fail(0, 5, 30, judge.Failed)
	expect(31.99, "w1 w2 w3")
	expect(32.01, "w0 w1 w2 w3")
}

func TestBackOffIsBounded(t *testing.T) {
	p := upPool(t, 2)
	at := 1.0
	for range 10 {
		p.fail(0, 5, at, judge.Failed)
		if left := p.trialAt(0, at) - at; left > 30.000001 || left < 2 {
			t.Fatalf("ejected for %v s; want 2..30", left)
		}
		at = p.trialAt(0, at)
	}
}

func TestHalfStays(t *testing.T) {
	f := func(workers, dead, want int) {
		t.Helper()
		p := upPool(t, workers)
		for i := range dead {
			p.kill(i, 1)
		}
		for i := range workers {
			p.fail(i, 20, 2, judge.Failed)
		}
		if got := p.Up(p.after(2)); got != want {
			t.Errorf("%d workers, %d dead, all fail: %d left; want %d", workers, dead, got, want)
		}
	}
	f(1, 0, 1)
	f(2, 0, 1)
	f(3, 0, 2)
	f(10, 0, 5)
	f(10, 6, 2)
}

// TestHalfOfWhatIsThere: a worker that its operator drains is no help to the others, and does not count. For whatever
// reason the others are set aside, half of them stay.
func TestHalfOfWhatIsThere(t *testing.T) {
	p := upPool(t, 10)
	for i := range 3 {
		p.fail(i, 3, 1, judge.Leaving)
	}
	p.Drain("w3", true, start)
	for i := 4; i < 10; i++ {
		p.fail(i, 20, 2, judge.Failed)
	}
	if got := p.Up(p.after(2)); got != 5 {
		t.Errorf("one drains, three leave, six fail: %d left; want 5 of the nine", got)
	}
}

// TestNeededWorkerIsNotHeldToTrials: an ejected worker whose trial fails is used like any other once too few others are
// there.
func TestNeededWorkerIsNotHeldToTrials(t *testing.T) {
	p := upPool(t, 2)
	p.fail(0, 5, 1, judge.Failed)
	p.kill(1, 2)
	p.fail(0, 1, 4, judge.Failed) // the trial
	var open []*Ticket
	for range 3 {
		k, ok := p.TryBegin(p.fleet.workers[0], Dispatch{}, p.after(4.1))
		if !ok {
			t.Fatalf("request %d beside others was refused by the only worker", len(open)+1)
		}
		open = append(open, k)
	}
	for _, k := range open {
		k.End(p.after(5), judge.Outcome{Kind: judge.Failed})
	}
	if s := p.Stats(p.after(5))[0]; s.State != Ready || s.Ejections != 1 {
		t.Errorf("%s with %d ejections; want up, 1", s.State, s.Ejections)
	}
}

func TestEjectedKeepsItsCache(t *testing.T) {
	downs := 0
	p := New(Config{Workers: specs(2), Caches: hooks{down: func(uint32) { downs++ }}}, start)
	for _, w := range p.fleet.workers {
		p.heal(int(w.slot), 0)
	}
	p.fleet.workers[0].speed.Rel = 2
	p.fail(0, 5, 1, judge.Failed)
	if s := p.Stats(p.after(1))[0]; downs != 0 || s.State != Ejected || s.Ejections != 1 || s.Slow < 1.9 {
		t.Errorf("%d downs, %+v; want none, ejected, m kept", downs, s)
	}
}

// TestOneBadOfTen: one of ten workers fails for ten minutes, then is well again. The test logs the cost.
func TestOneBadOfTen(t *testing.T) {
	p := upPool(t, 10)
	w := p.fleet.workers[7]
	bad, healed := 0, 0
	kept := 0 // its share of a second in the minute after
	for i := range 20 * 720 {
		at := 1 + float64(i)/20
		rows, ws, _ := p.Snapshot(Query{At: p.after(at)}, nil, nil)
		chosen := ws[fewest(rows)]
		if i%20 == 0 {
			kept = 0
		}
		k, ok := p.TryBegin(chosen, Dispatch{}, p.after(at))
		if !ok {
			t.Fatalf("at %v s: %s refused", at, chosen.id)
		}
		kind := judge.Answered
		if chosen == w {
			if kept++; at < 600 {
				kind = judge.Failed
				bad++
			} else if healed++; kept > 6 {
				t.Fatalf("at %v s, well again: %d requests in a second; its share is 2", at, kept)
			}
		}
		k.End(p.after(at), judge.Outcome{Kind: kind})
	}
	if bad < 10 || bad > 40 {
		t.Errorf("%d of 12,000 requests met the bad worker; want five and a trial each 30 s", bad)
	}
	if healed < 60 {
		t.Errorf("two minutes after, it got %d of 2,400", healed)
	}
	t.Logf("%d of 12,000 requests met the bad worker; %d of 2,400 after it was well", bad, healed)
}

// try begins a request at worker i if it takes one.
func (p *Pool) try(i int, at float64) *Ticket {
	k, _ := p.TryBegin(p.fleet.workers[i], Dispatch{PromptTokens: 10}, p.after(at))
	return k
}

// TestHalfOpen: after the back-off there is one trial at a time, and its end decides.
func TestHalfOpen(t *testing.T) {
	p := upPool(t, 4)
	expect := func(at float64, want string, breaker judge.BreakerState) {
		t.Helper()
		s := p.Stats(p.after(at))[0]
		if got := snap(p, "", at); got != want || s.Breaker != breaker {
			t.Errorf("at %v s: %s, breaker %s; want %s, %s", at, got, s.Breaker, want, breaker)
		}
	}
	end := func(k *Ticket, at float64, kind judge.Kind) {
		t.Helper()
		if k == nil {
			t.Fatalf("until %v s: no trial was let through", at)
		}
		k.End(p.after(at), judge.Outcome{Kind: kind})
	}
	expect(1, "w0 w1 w2 w3", judge.Closed)
	late := p.try(0, .5)
	p.fail(0, 5, 1, judge.Failed)
	expect(1, "w1 w2 w3", judge.Open)
	if p.try(0, 2) != nil {
		t.Error("a request got through an open breaker")
	}
	late.End(p.after(2), judge.Outcome{Kind: judge.Answered}) // it was sent before the trial, so it is none
	expect(2, "w1 w2 w3", judge.Open)
	expect(3.01, "w0 w1 w2 w3", judge.HalfOpen)
	trial := p.try(0, 3.1)
	expect(3.1, "w1 w2 w3", judge.HalfOpen)
	if p.try(0, 3.1) != nil {
		t.Error("a second trial got through")
	}
	end(trial, 3.2, judge.Canceled) // proves nothing: another request is the trial, a little later
	expect(3.25, "w1 w2 w3", judge.Open)
	expect(3.31, "w0 w1 w2 w3", judge.HalfOpen)
	end(p.try(0, 3.31), 3.4, judge.Broken)
	expect(3.5, "w1 w2 w3", judge.Open)
	expect(7.3, "w1 w2 w3", judge.Open)
	expect(7.5, "w0 w1 w2 w3", judge.HalfOpen)
	end(p.try(0, 7.5), 7.6, judge.Answered)
	expect(7.6, "w0 w1 w2 w3", judge.Closed)
	if s := p.Stats(p.after(7.7))[0]; !s.SlowStart || s.Ejections != 2 || s.Why != "" {
		t.Errorf("after a good trial: %+v; want a slow start, two ejections, no reason left", s)
	}
}

// TestLongTrial: the breaker does not wait for a stream of ten minutes, but for a trial without a byte.
func TestLongTrial(t *testing.T) {
	p := upPool(t, 2)
	p.fail(0, 5, 1, judge.Failed)
	k := p.try(0, 4)
	if got := snap(p, "", 60); got != "w1" {
		t.Errorf("a minute without a byte: %s; want w1", got)
	}
	k.FirstByte(p.after(60))
	if got := snap(p, "", 60.5); got != "w1" {
		t.Errorf("half a second after the first byte: %s; want w1", got)
	}
	if got := snap(p, "", 61.1); got != "w0 w1" || p.Stats(p.after(61.1))[0].Breaker != judge.Closed {
		t.Errorf("a second after the first byte: %s; want both", got)
	}
	k.End(p.after(62), judge.Outcome{Kind: judge.Broken})
	if got := p.Stats(p.after(62))[0].Breaker; got != judge.Closed {
		t.Errorf("it broke off later: %s; want closed, one failure of five", got)
	}
}

// TestTrialDiesWithItsWorker: the breaker of a worker that comes back is closed, however the trial ends.
func TestTrialDiesWithItsWorker(t *testing.T) {
	p := upPool(t, 2)
	w := p.fleet.workers[0]
	p.fail(0, 5, 1, judge.Failed)
	k := p.try(0, 4)
	p.kill(int(w.slot), 5)
	p.heal(int(w.slot), 6)
	if s := p.Stats(p.after(6))[0]; s.Breaker != judge.Closed || s.State != Ready {
		t.Errorf("back from the dead: %+v", s)
	}
	k.End(p.after(7), judge.Outcome{Kind: judge.Failed})
	p.fail(0, inARow[judge.Failed]-1, 7, judge.Failed)
	if s := p.Stats(p.after(7))[0]; s.Breaker != judge.Closed {
		t.Errorf("the old process' request counts against the new one: %+v", s)
	}
}

func TestLeaving(t *testing.T) {
	p := upPool(t, 2)
	w := p.fleet.workers[0]
	told := judge.Outcome{Kind: judge.Leaving, Err: "finish_reason abort"}
	other := p.try(0, 1)
	for n := range 3 {
		if got := snap(p, "", 2); got != "w0 w1" {
			t.Errorf("after %d requests: %s; want w0 w1", n, got)
		}
		p.try(0, 1).End(p.after(2), told)
	}
	s := p.Stats(p.after(2))[0]
	if s.State != Draining || s.Why != "finish_reason abort" || s.Up || s.InFlight != 1 || s.Left != 1 || s.Failed != 0 {
		t.Errorf("told: %+v", s)
	}
	if got := snap(p, "", 2); got != "w1" {
		t.Errorf("told: %s; want w1", got)
	}
	other.End(p.after(3), told) // another answer of the same time changes nothing
	at, back := 2.0, 5.0
	for range 6 {
		if got := snap(p, "", at+back-.1); got != "w1" {
			t.Errorf("%v s after it told: %s; want w1", back-.1, got)
		}
		at += back + .1
		k := p.try(0, at)
		if k == nil {
			t.Fatalf("after %v s no trial is let through", back)
		}
		k.End(p.after(at), told)
		back = min(60, 2*back)
	}
	if s := p.Stats(p.after(at))[0]; s.Left != 1 {
		t.Errorf("counted %d times; want once", s.Left)
	}
	at += 61
	p.try(0, at).End(p.after(at), judge.Outcome{Kind: judge.Answered}) // an engine that was paused, and goes on
	if s := p.Stats(p.after(at))[0]; s.State != Ready || !s.SlowStart || w.flight.n != 0 {
		t.Errorf("resumed: %+v", s)
	}
	for range 3 {
		p.try(0, at+1).End(p.after(at+1), told)
	}
	if got := w.health.BackOff(); got != 5*time.Second {
		t.Errorf("the next time it is tried after %v; want 5 s", got)
	}
}

// TestLeavingEndsWithItsProcess: a start time in the metrics, or a death in between, shows a new process.
func TestLeavingEndsWithItsProcess(t *testing.T) {
	f := func(name string, between func(p *Pool, w *Worker), want string) {
		t.Helper()
		p := upPool(t, 3)
		w := p.fleet.workers[0]
		p.scrape(int(w.slot), Metrics{Process: 1000}, 1)
		late := p.try(0, 1)
		p.fail(0, 3, 2, judge.Leaving)
		between(p, w)
		if got := snap(p, "", 4); got != want {
			t.Errorf("%s: %s; want %s", name, got, want)
		}
		late.End(p.after(4), judge.Outcome{Kind: judge.Leaving})
		if got := snap(p, "", 4); got != want {
			t.Errorf("%s, and then a request of before ends: %s; want %s", name, got, want)
		}
	}
	f("nothing", func(*Pool, *Worker) {}, "w1 w2")
	f("healthy all the while", func(p *Pool, w *Worker) { p.heal(int(w.slot), 3) }, "w1 w2")
	f("same process", func(p *Pool, w *Worker) { p.scrape(int(w.slot), Metrics{Process: 1000}, 3) }, "w1 w2")
	f("new process", func(p *Pool, w *Worker) { p.scrape(int(w.slot), Metrics{Process: 1060}, 3) }, "w0 w1 w2")
	f("down and up", func(p *Pool, w *Worker) {
		p.kill(int(w.slot), 3)
		p.force(w, Dispatch{}, 3).End(p.after(3.1), judge.Outcome{Kind: judge.Leaving})
		p.heal(int(w.slot), 3.5)
	}, "w0 w1 w2")
}

// TestHalfDoNotLeave: answers that show a shutdown at every worker show something about the requests.
func TestHalfDoNotLeave(t *testing.T) {
	p := upPool(t, 2)
	p.fail(0, 3, 1, judge.Leaving)
	p.fail(1, 30, 1, judge.Leaving)
	if got := snap(p, "", 1); got != "w1" {
		t.Errorf("both seem to go: %s; want w1", got)
	}
	if got := snap(p, "", 6.1); got != "w0 w1" {
		t.Errorf("after 5 s: %s; want w0 for a trial", got)
	}
}
