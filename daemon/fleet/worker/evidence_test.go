package worker

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// TestOneRequestConvictsNobody: whatever sign one request brings, the worker gets requests as before, or a little later
// if it says that it is full or has accepted nothing yet.
func TestOneRequestConvictsNobody(t *testing.T) {
	for k := judge.Canceled; k <= judge.Dying; k++ {
		p := upPool(t, 3)
		p.send(0, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: k})
		s := p.Stats(p.after(2.1))[0]
		convicted := s.State != Ready
		if proved := k == judge.Refused || k == judge.Dying; convicted != proved {
			t.Errorf("kind %d: %v", k, s.State)
		}
		if got := snap(p, "", 2.1); !convicted && k != judge.Busy && k != judge.Late && k != judge.Denied && got != "w0 w1 w2" {
			t.Errorf("kind %d: %s; want all", k, got)
		}
	}
}

// TestSignsInARow: how many signs of a kind set a worker aside, and what ends a row.
func TestSignsInARow(t *testing.T) {
	f := func(what string, k judge.Kind, n int, between func(p *Pool, n int), want Standing) {
		t.Helper()
		p := upPool(t, 3)
		for i := range n {
			if i > 0 && between != nil {
				between(p, i)
			}
			at := 1 + float64(i)
			p.send(0, Dispatch{}, at).End(p.after(at+.1), judge.Outcome{Kind: k})
		}
		if got := p.Stats(p.after(20))[0].State; got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	good := func(p *Pool, n int) {
		p.send(0, Dispatch{}, float64(n)).End(p.after(float64(n)+.5), judge.Outcome{Kind: judge.Answered})
	}
	early := func(p *Pool, n int) {
		p.send(0, Dispatch{}, .5).End(p.after(float64(n)+.5), judge.Outcome{Kind: judge.Answered})
	}
	f("four failures", judge.Failed, 4, nil, Ready)
	f("five", judge.Failed, 5, nil, Ejected)
	f("five, good answers between", judge.Failed, 5, good, Ready)
	f("five broken", judge.Broken, 5, nil, Ejected)
	f("two aborts", judge.Leaving, 2, nil, Ready)
	f("three", judge.Leaving, 3, nil, Draining)
	f("three, and answers to later requests between", judge.Leaving, 3, good, Ready)
	f("three, and answers to requests of before between", judge.Leaving, 3, early, Draining)
	f("its own words", judge.Dying, 1, nil, Draining)
	f("busy", judge.Busy, 100, nil, Ready)
	f("late connections", judge.Late, 100, nil, Ready)
	f("refusals that nobody compared", judge.Denied, 100, nil, Ready)
}

// TestExcuse: what another worker repeats is taken back, also the sign that set a worker aside.
func TestExcuse(t *testing.T) {
	for _, k := range []judge.Kind{judge.Failed, judge.Broken, judge.Leaving} {
		p := upPool(t, 3)
		var last *Ticket
		for range inARow[k] {
			last = p.send(0, Dispatch{}, 1)
			last.End(p.after(1), judge.Outcome{Kind: k})
		}
		if s := p.Stats(p.after(1))[0]; s.Up {
			t.Errorf("kind %d: %+v", k, s)
		}
		p.send(1, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: k, Excused: true})
		last.Excuse(k, p.after(1))
		if got := snap(p, "", 1); got != "w0 w1 w2" {
			t.Errorf("kind %d, taken back: %s; want all", k, got)
		}
		p = upPool(t, 3)
		for range inARow[k] * 4 {
			first := p.send(0, Dispatch{}, 2)
			first.End(p.after(2), judge.Outcome{Kind: k})
			first.Excuse(k, p.after(2))
		}
		p.send(0, Dispatch{}, 2).End(p.after(2), judge.Outcome{Kind: k})
		if got := snap(p, "", 2); got != "w0 w1 w2" {
			t.Errorf("kind %d, each but one taken back: %s; want all", k, got)
		}
	}
}

// TestExcusedBreakIsChecked: a request that broke a connection at two workers may have ended both processes, and health
// checks show it only while they are down.
func TestExcusedBreakIsChecked(t *testing.T) {
	var w watcher
	p := upPoolOf(Config{Workers: specs(2), Watcher: &w})
	w.calls = nil
	p.send(0, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: judge.Broken})
	w.want(t, "scrape 1", "check 1")
	p.send(1, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: judge.Broken, Excused: true})
	w.want(t, "scrape 2", "check 2")
	p.send(1, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: judge.Failed, Excused: true})
	w.want(t)
}

// TestExcuseKeepsWhatOthersHaveShown: the sign that set a worker aside is taken back, and those before it stay.
func TestExcuseKeepsWhatOthersHaveShown(t *testing.T) {
	f := func(what string, good bool, want Standing) {
		t.Helper()
		p := upPool(t, 3)
		fail := func() *Ticket {
			x := p.send(0, Dispatch{}, 1)
			x.End(p.after(1), judge.Outcome{Kind: judge.Failed})
			return x
		}
		for range inARow[judge.Failed] - 1 {
			fail()
		}
		last := fail()
		if good {
			p.send(0, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: judge.Answered})
		}
		last.Excuse(judge.Failed, p.after(2))
		if got := p.Stats(p.after(2))[0].State; got != Ready {
			t.Errorf("%s, taken back: %v", what, got)
		}
		fail()
		if got := p.Stats(p.after(2))[0].State; got != want {
			t.Errorf("%s, and one more failure: %v; want %v", what, got, want)
		}
	}
	f("four failures and one of a request", false, Ejected)
	f("the same, and a good answer", true, Ready)
}

// TestExcuseOfATrial: a trial whose fault is the request's shows nothing, and the worker stays as it was: the next
// request is a trial. Nor does it count for the back-off.
func TestExcuseOfATrial(t *testing.T) {
	for _, k := range []judge.Kind{judge.Failed, judge.Broken, judge.Leaving} {
		p := upPool(t, 3)
		for range 3 {
			x := p.send(0, Dispatch{}, 1)
			x.End(p.after(1), judge.Outcome{Kind: judge.Denied})
			x.Confirm(judge.Outcome{Kind: judge.Denied}, p.after(1))
		}
		h := &p.fleet.endpoints[0].health
		until, back := p.trialAt(0, 1), h.BackOff()
		trial := p.send(0, Dispatch{}, until)
		trial.End(p.after(until), judge.Outcome{Kind: k})
		trial.Excuse(k, p.after(until+.5))
		if s := h.Breaker(sec(until + .5)); s != judge.HalfOpen || !h.IsSetAside() || h.IsGoingAway() || h.BackOff() != back {
			t.Errorf("kind %d: %v, %+v; want half-open, as before the trial", k, s, h.BackOff())
		}
		p.send(0, Dispatch{}, until+1).End(p.after(until+1), judge.Outcome{Kind: judge.Answered})
		if got := p.Stats(p.after(until + 1))[0].State; got != Ready {
			t.Errorf("kind %d, then a good trial: %v", k, got)
		}
	}
}

// TestConfirm: three requests that a worker refuses and others accept set it aside; accepted ones end the row.
func TestConfirm(t *testing.T) {
	p := upPool(t, 3)
	refused := judge.Outcome{Kind: judge.Denied, Err: "HTTP Unauthorized"}
	deny := func(at float64) {
		k := p.send(0, Dispatch{}, at)
		if !k.Doubtful(p.after(at)) {
			t.Error("a worker that has accepted nothing is trusted")
		}
		k.End(p.after(at), refused)
		k.Confirm(refused, p.after(at))
	}
	deny(1)
	deny(1)
	if s := p.Stats(p.after(1))[0]; s.State != Ready {
		t.Errorf("after two: %v; want ready", s.State)
	}
	if got := snap(p, "", 1); got != "w1 w2" {
		t.Errorf("after two: %s; want w1 w2 until others have answered", got)
	}
	deny(1)
	if s := p.Stats(p.after(1))[0]; s.State != Ejected || s.Why != refused.Err || s.Denied != 3 {
		t.Errorf("after three: %+v", s)
	}
	deny(3.1) // its trial
	if got := snap(p, "", 6); got != "w1 w2" {
		t.Errorf("after its trial: %s; want w1 w2 for twice as long", got)
	}
	p.send(0, Dispatch{}, 7.2).End(p.after(7.2), judge.Outcome{Kind: judge.Answered})
	if got := p.Stats(p.after(7.3))[0].State; got != Ready {
		t.Errorf("after a good trial: %v", got)
	}
}

// TestRefusalBeforeTheSend: of requests that chose a worker at once, those that are not sent yet when it refuses the first
// choose again. With no other worker left they are sent there.
func TestRefusalBeforeTheSend(t *testing.T) {
	p := upPool(t, 2)
	begin := func(at float64) bool {
		_, ok := p.TryBegin(p.fleet.workers[0], Dispatch{Class: 3}, p.after(at))
		return ok
	}
	k, _ := p.TryBegin(p.fleet.workers[0], Dispatch{Class: 3}, p.after(1))
	snap(p, "", 1)
	k.End(p.after(1.1), judge.Outcome{Kind: judge.Denied, Err: "HTTP 404"})
	if begin(1.1) {
		t.Error("the second request is sent to a worker that has just refused the first")
	}
	if _, ok := p.TryBegin(p.fleet.workers[0], Dispatch{Class: 4}, p.after(1.1)); !ok {
		t.Error("a request of another class is not sent")
	}
	p.kill(1, 1.2)
	if _, _, s := p.Snapshot(Query{Class: 3, At: p.after(1.3)}, nil, nil); s != Ready || !begin(1.3) {
		t.Errorf("%v, and the only worker left does not get the request", s)
	}
}

// TestBalancerIsNoRestart: two processes behind one URL clear the cache once, and are said once.
func TestBalancerIsNoRestart(t *testing.T) {
	restarts := 0
	p := upPoolOf(Config{Workers: specs(2), Caches: hooks{restarted: func(uint32) { restarts++ }}})
	for i := range 20 {
		p.scrape(0, Metrics{Process: 1000 + 100*float64(i%2)}, float64(i))
	}
	if s := p.Stats(p.after(20))[0]; restarts != 1 || s.Restarts != 1 {
		t.Errorf("%d restarts announced, %d counted; want 1", restarts, s.Restarts)
	}
}

// TestAsleep: an engine that was put to sleep gets nothing, not even as the last one, and its cache is gone.
func TestAsleep(t *testing.T) {
	cleared := 0
	p := upPoolOf(Config{Workers: specs(2), Caches: hooks{restarted: func(uint32) { cleared++ }}})
	p.scrape(0, Metrics{Asleep: true}, 1)
	if got := snap(p, "", 1); got != "w1" || cleared != 1 || p.Stats(p.after(1))[0].State != Asleep {
		t.Errorf("%s, cleared %d times, %v", got, cleared, p.Stats(p.after(1))[0].State)
	}
	p.scrape(1, Metrics{Asleep: true}, 2)
	if got := snap(p, "", 2); got != "none up" || p.Up(p.after(2)) != 0 {
		t.Errorf("all asleep: %s", got)
	}
	p.scrape(0, Metrics{}, 3)
	if got := snap(p, "", 3); got != "w0" {
		t.Errorf("awake: %s; want w0", got)
	}
}

// TestQueueIsNoProgress: an engine that hangs is left alone although its gauges move.
func TestQueueIsNoProgress(t *testing.T) {
	f := func(what string, was, is Metrics, want bool) {
		t.Helper()
		if got := progressed(&was, &is); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	f("more wait", Metrics{Waiting: 1}, Metrics{Waiting: 9}, false)
	f("fewer run", Metrics{Running: 9}, Metrics{Running: 1}, false)
	f("blocks were freed", Metrics{Usage: .9}, Metrics{Usage: .1}, false)
	f("blocks were filled", Metrics{Usage: .1}, Metrics{Usage: .2}, true)
	f("tokens", Metrics{TokenTime: 1}, Metrics{TokenTime: 2}, true)
	f("a prompt looked up", Metrics{Queries: 1}, Metrics{Queries: 2}, true)
}

// TestTrustedRefusals: of the refusals of trusted workers one a second is compared with another worker's answer.
func TestTrustedRefusals(t *testing.T) {
	p := upPool(t, 2)
	compared := 0
	for n := range 100 {
		at := 1 + float64(n)*.1
		p.send(0, Dispatch{}, at).End(p.after(at), judge.Outcome{Kind: judge.Answered})
		k := p.send(0, Dispatch{}, at)
		if k.Doubtful(p.after(at)) {
			compared++
		}
		k.End(p.after(at), judge.Outcome{Kind: judge.Denied})
	}
	if compared < 9 || compared > 11 {
		t.Errorf("%d refusals compared in 10 s; want one a second", compared)
	}
}

// TestOrders: an order puts a worker to sleep before its page says so. A second one wakes it where no page comes.
func TestOrders(t *testing.T) {
	p := upPool(t, 2)
	f := func(what string, at float64, want string) {
		t.Helper()
		if got := snap(p, "", at); got != want {
			t.Errorf("%s: %q get requests; want %q", what, got, want)
		}
	}
	id := p.fleet.workers[0].id
	p.Slept(id, p.after(1))
	f("asleep", 1, "w1")
	p.Woke(id, p.after(2))
	f("awake, without a page", 200, "w0 w1")
	p.Slept(id, p.after(201))
	p.scrape(0, Metrics{Asleep: true}, 202)
	p.Woke(id, p.after(203)) // a part of it
	f("asleep by its page", 203, "w1")
	p.scrape(0, Metrics{}, 204)
	f("awake by its page", 400, "w0 w1")
	p.Woke("none", p.after(401))
	p.Slept("none", p.after(401))
}
