package worker

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// TestSilentKeepsWhatItHas: a request at a silent worker moves after three graces, if nothing of its answer came and
// another worker takes it.
func TestSilentKeepsWhatItHas(t *testing.T) {
	var tried uint64
	var since func(p *Pool)
	limit := 0
	f := func(what string, workers int, begun bool, model string, want bool) {
		t.Helper()
		c := new(clock)
		p := upPoolOf(Config{Workers: specs(workers), After: c.after, MaxInFlight: limit})
		for i := range p.fleet.workers[1:] {
			p.say(i+1, "tiny")
		}
		h := &asker{clock: c}
		k := p.send(0, Dispatch{Model: model, Holder: h, Tried: tried}, 1)
		if begun {
			k.FirstByte(p.after(2))
		}
		if since != nil {
			since(p)
		}
		c.to(8)
		p.hush(0, 8)
		c.to(10)
		p.hush(0, 10)
		c.to(69)
		if len(h.told) > 0 {
			t.Errorf("%s: given up at %v s; want three graces of 20 s after 10", what, h.told)
		}
		c.to(100)
		if got := len(h.told) > 0; got != want {
			t.Errorf("%s: given up %v; want %v", what, got, want)
		}
		k.End(p.after(101), judge.Outcome{Kind: judge.Answered})
	}
	f("another worker", 2, false, "tiny", true)
	f("an answer that has begun", 2, true, "tiny", false)
	f("the only worker", 1, false, "", false)
	f("the only worker of its model", 2, false, "large", false)

	tried = 1 << 1
	f("the other one has failed it", 2, false, "tiny", false)
	f("and there is a third", 3, false, "tiny", true)
	tried = 0
	since = func(p *Pool) {
		for range 5 {
			p.send(1, Dispatch{}, 2).End(p.after(2), judge.Outcome{Kind: judge.Failed})
		}
	}
	f("the other one waits for a trial, which is one of all that are moved", 2, false, "tiny", false)
	since, limit = func(p *Pool) { p.send(1, Dispatch{}, 2) }, 1
	f("the other one is full", 2, false, "tiny", false)
}

// TestOneIsMovedForOnePlace: of the requests at a silent worker one a second is moved where workers have a limit.
func TestOneIsMovedForOnePlace(t *testing.T) {
	for limit, want := range map[int]int{0: 3, 3: 1} {
		c := new(clock)
		p := upPoolOf(Config{Workers: specs(2), After: c.after, MaxInFlight: limit})
		var holders []*asker
		for range 3 {
			holders = append(holders, &asker{clock: c})
			p.send(0, Dispatch{Holder: holders[len(holders)-1]}, 1)
		}
		p.hush(0, 8)
		p.hush(0, 10)
		c.to(70.5)
		moved := 0
		for _, h := range holders {
			moved += min(1, len(h.told))
		}
		if moved != want {
			t.Errorf("limit %d: %d are moved at once; want %d", limit, moved, want)
		}
	}
}

// TestSurvived: good checks after a loss show that the process lived on, unless several stand behind the URL.
func TestSurvived(t *testing.T) {
	p := upPool(t, 2)
	key := p.fleet.workers[0].key
	if p.Survived(key, p.after(1)) {
		t.Error("nobody has asked since")
	}
	p.heal(0, 2)
	if !p.Survived(key, p.after(1)) {
		t.Error("a good check came since")
	}
	for i, began := range []float64{1e9, 2e9, 1e9} {
		p.scrape(0, Metrics{Process: began}, 3+float64(i))
	}
	p.heal(0, 8)
	if p.Survived(key, p.after(7)) {
		t.Error("another process behind the URL may have answered")
	}
	key = p.fleet.workers[1].key
	p.scrape(1, Metrics{Process: 1e9}, 1)
	p.heal(1, 3)
	if p.Survived(key, p.after(2)) {
		t.Error("a process that was started anew at once answers checks, too")
	}
	p.scrape(1, Metrics{Process: 1e9}, 4)
	if !p.Survived(key, p.after(2)) {
		t.Error("a page of metrics has shown the same process since")
	}
}

// TestSilentGetsWhatNobodyElseTakes: a silent worker keeps its cache in the index and gets nothing while another is up.
func TestSilentGetsWhatNobodyElseTakes(t *testing.T) {
	cleared := 0
	p := upPoolOf(Config{Workers: specs(2), Caches: hooks{down: func(uint32) { cleared++ }}})
	p.hush(0, 8)
	p.hush(0, 10)
	if got := snap(p, "", 10); got != "w1" || cleared != 0 || p.Up(p.after(10)) != 1 {
		t.Errorf("one is silent: %s, cleared %d times, %d up; want w1, 0, 1", got, cleared, p.Up(p.after(10)))
	}
	p.kill(1, 11)
	if got := snap(p, "", 11); got != "w0" || p.Up(p.after(11)) != 1 {
		t.Errorf("the other is down: %s, %d up; want w0, 1", got, p.Up(p.after(11)))
	}
	p.heal(0, 12)
	if s := p.Stats(p.after(12))[0]; s.State != Ready || cleared != 1 {
		t.Errorf("heard again: %v; cleared %d times, want once, for the other", s.State, cleared)
	}
}

// TestTrialIsMoved: the trial of a worker that hangs goes to another one after five seconds, and counts as failed. An
// answer in one piece is moved after three pages of metrics on which nothing moved.
func TestTrialIsMoved(t *testing.T) {
	pages := ""
	f := func(what string, d Dispatch, first float64, workers int, moved bool) {
		t.Helper()
		c := new(clock)
		p := upPoolOf(Config{Workers: specs(workers), After: c.after})
		p.fail(0, inARow[judge.Failed], 1, judge.Failed)
		if !p.fleet.workers[0].health.IsSetAside() { // as where the fleet can spare it
			p.fleet.workers[0].health.SetAside(&judge.Verdict{Cause: judge.Failing}, 0, 2*time.Second, sec(1))
		}
		if pages != "" {
			p.scrape(0, Metrics{Queries: 1}, 2)
			p.scrape(0, Metrics{Queries: 2}, 3)
		}
		c.to(4)
		h := &asker{clock: c}
		d.Holder = h
		k := new(Ticket)
		if !p.Begin(k, p.fleet.workers[0], d, p.after(4)) {
			t.Fatalf("%s: no trial is let through", what)
		}
		if first > 0 {
			c.to(first)
			k.FirstByte(p.after(first))
		}
		for at := 6.0; at < 20; at += 2 {
			if what != "its health is late" {
				c.to(at)
				p.heal(0, at)
			}
			if at == 12 && pages == "move" {
				p.scrape(0, Metrics{Queries: 3}, at)
			}
		}
		c.to(20)
		want := 9
		if d.Whole {
			want = 19
		}
		if got := len(h.told) > 0; got != moved || moved && h.told[0] != want {
			t.Errorf("%s: told at %v s", what, h.told)
		}
		k.End(p.after(20), judge.Outcome{Kind: judge.Canceled})
		if s := p.Stats(p.after(20))[0]; moved && s.Breaker != judge.Open {
			t.Errorf("%s: %v after the trial", what, s.Breaker)
		}
	}
	f("a trial without a byte", Dispatch{}, 0, 2, true)
	f("one that streams", Dispatch{}, 5, 2, false)
	f("one in one piece, and no metrics", Dispatch{Whole: true}, 0, 2, false)
	f("nobody else is there", Dispatch{}, 0, 1, false)
	f("its health is late", Dispatch{}, 0, 2, false) // it may be the request that keeps it busy
	pages = "stand"
	f("one in one piece, and the metrics stand still", Dispatch{Whole: true}, 0, 2, true)
	pages = "move"
	f("one in one piece, and the metrics move", Dispatch{Whole: true}, 0, 2, false)
}

// TestAnOpenPort: a worker that is down by what its checks answer may end what it has begun, and one whose port is closed
// cannot.
func TestAnOpenPort(t *testing.T) {
	f := func(what string, falls func(p *Pool, id uint64), want bool) {
		t.Helper()
		c := new(clock)
		p := upPoolOf(Config{Workers: specs(2), After: c.after})
		id := p.fleet.workers[0].number
		p.send(0, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: judge.Refused}) // and is back soon
		p.heal(0, 2)
		h := &asker{clock: c}
		p.send(0, Dispatch{Holder: h}, 3).FirstByte(p.after(4))
		falls(p, id)
		c.to(60)
		if got := len(h.told) > 0; got != want || p.Stats(p.after(60))[0].State != Down {
			t.Errorf("%s: given up %v; want %v", what, got, want)
		}
	}
	f("503 twice", func(p *Pool, id uint64) { p.Ill(id, "503", p.after(5)); p.Ill(id, "503", p.after(6)) }, false)
	f("refused", func(p *Pool, id uint64) { p.Dead(id, "refused", p.after(5)) }, true)
}

// TestASecondLookAtABadCheck: one 503 on /health is looked at again at once.
func TestASecondLookAtABadCheck(t *testing.T) {
	var w watcher
	p := upPoolOf(Config{Workers: specs(1), Watcher: &w})
	w.calls = nil
	p.Ill(p.fleet.workers[0].number, "503", p.after(1))
	w.want(t, "check 1")
}

// TestElsewhere: who takes a request that its worker is too full for.
func TestElsewhere(t *testing.T) {
	f := func(what string, workers int, before func(p *Pool), want bool) {
		t.Helper()
		p := upPool(t, workers)
		if before != nil {
			before(p)
		}
		if got := p.send(0, Dispatch{}, 1).Elsewhere(p.after(1)); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	f("another worker", 2, nil, true)
	f("nobody", 1, nil, false)
	f("another rank of the same process", 1, func(p *Pool) { p.Counted(p.fleet.workers[0].number, 2, p.after(0)) }, false)
	f("one that has said that it is full", 2, func(p *Pool) { p.fail(1, 1, 1, judge.Busy) }, false)
}

// TestNobodyAsksASleeper: an engine that sleeps gets nothing, also if it was set aside before.
func TestNobodyAsksASleeper(t *testing.T) {
	p := upPool(t, 2)
	p.fail(0, inARow[judge.Failed], 1, judge.Failed)
	p.kill(1, 1)
	p.scrape(0, Metrics{Asleep: true}, 1)
	if got := snap(p, "", 1); got != "none up" {
		t.Errorf("%s; want nobody", got)
	}
}
