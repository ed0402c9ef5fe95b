package worker

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

func TestEstimateWorkedValues(t *testing.T) {
	p := New(Config{}, start)
	f := func(tokens, cached int, want float64) {
		t.Helper()
		near(t, "Estimate", p.Estimate(tokens, cached), want, want*1e-3)
	}
	f(15000, 0, 1.2289)     // 1 + 2/65536*7500
	f(15000, 14000, 0.0962) // (1000 + 2*1000/65536*14500)/15000
	f(15000, 15000, 9.718e-5)
	f(0, 0, 6.667e-5)
	f(65536, 0, 2*65536/15000.)
}

// TestWait checks W's formula, step by step on one worker of slowness 1.
func TestWait(t *testing.T) {
	p := upPool(t, 1)
	w := p.fleet.workers[0]
	wait := func(at, want float64) {
		t.Helper()
		rows := p.rows(at)
		near(t, "W", rows[0].Wait, want, 1e-6)
	}
	begin := func(at, est float64) *Ticket {
		return p.force(w, Dispatch{PromptTokens: 100, CachedTokens: 99, Est: est}, at)
	}
	wait(1, 0)
	a := begin(1, 2)
	b := begin(2, 3)
	wait(2, 4) // 5 - 1 s of a's 2
	wait(9, 3) // a should have ended: no more than its 2 s go
	a.FirstByte(p.after(9))
	wait(9, 3) // b's time begins at a's first byte, not at its dispatch
	wait(10, 2)
	c := begin(10, 1)
	wait(10, 3)
	b.End(p.after(10.2), judge.Outcome{}) // the client left: c is the oldest, since its dispatch
	wait(10.5, .5)
	wait(11, 0)
	c.FirstByte(p.after(11))
	wait(11, 0)
	for _, k := range []*Ticket{a, b, c, a} {
		k.End(p.after(12), judge.Outcome{})
	}
	if w.flight.n != 0 || w.queue.pend != 0 || w.queue.tokens != 0 {
		t.Errorf("at the end: in flight %d, pend %v, tokens %d", w.flight.n, w.queue.pend, w.queue.tokens)
	}
}

func TestWaitTimesSlowness(t *testing.T) {
	q := queue{}
	q.push(requestAt(0, 1))
	q.push(requestAt(.5, 1))
	near(t, "W(0.5)", q.wait(sec(.5), 2), 3.5, 1e-9)
	near(t, "W(2)", q.wait(sec(2), 2), 2, 1e-9)
	near(t, "W(9)", q.wait(sec(9), 2), 2, 1e-9)
}

// TestSurelyAhead: a worker that may be twice as fast as it was, and whose last answer may be on its way, has the work
// ahead of a request that is left then.
func TestSurelyAhead(t *testing.T) {
	q := queue{}
	first, second, third := requestAt(0, 1), requestAt(.5, 1), requestAt(.5, 1)
	for _, r := range []*request{first, second, third} {
		q.push(r)
	}
	near(t, "before the first", q.ahead(first, sec(.5), 2), 0, 0)
	near(t, "before the third, at once", q.ahead(third, sec(.5), 2), 1.5, 1e-9)
	near(t, "a second later", q.ahead(third, sec(1.5), 2), .5, 1e-9)
	near(t, "when no answer has come for long", q.ahead(third, sec(9), 2), 0, 0)
	q.last = sec(9)
	near(t, "when one has come", q.ahead(third, sec(9), 2), 0, 0)
	near(t, "when those of its step have come too", q.ahead(third, sec(9.02), 2), 1.98, 1e-9)
}

// TestWhole: an answer in one piece leaves the queue when its time is over, or when a later stream begins.
func TestWhole(t *testing.T) {
	p := upPool(t, 1)
	w := p.fleet.workers[0]
	whole := p.force(w, Dispatch{PromptTokens: 2000, Est: 1, Whole: true}, 1)
	stream := p.force(w, Dispatch{PromptTokens: 2000, Est: 1}, 1)
	rows := p.rows(1.5)
	near(t, "W before", rows[0].Wait, 1.5, 1e-6)
	rows = p.rows(2.5)
	near(t, "W after its time", rows[0].Wait, .5, 1e-6)
	if whole.request.queued || !stream.request.queued {
		t.Fatalf("queued: whole %v, stream %v; want false, true", whole.request.queued, stream.request.queued)
	}
	stream.FirstByte(p.after(3))

	before := p.force(w, Dispatch{PromptTokens: 2000, Est: 9, Whole: true}, 4)
	last := p.force(w, Dispatch{PromptTokens: 2000, Est: 1}, 4)
	last.FirstByte(p.after(5))
	if before.request.queued {
		t.Error("a later stream's first byte leaves the answer in one piece in the queue")
	}
	near(t, "its group's est", w.queue.group.est, 10, 1e-9)
}

// TestSample checks which groups of first bytes are samples, and their value.
func TestSample(t *testing.T) {
	type req struct {
		at, est        float64
		tokens, cached int
		first          float64
	}
	f := func(name string, want float64, reqs ...req) {
		t.Helper()
		var q queue
		var ts []*request
		for _, r := range reqs {
			k := requestAt(r.at, r.est)
			k.tokens, k.cached = r.tokens, r.cached
			ts = append(ts, k)
			q.push(k)
		}
		var x float64
		for i, r := range reqs {
			if v, ok := q.sample(sec(r.first)); ok {
				x = v
			}
			q.firstByte(ts[i], sec(r.first))
		}
		if v, ok := q.sample(sec(1e9)); ok {
			x = v
		}
		near(t, name, x, want, 1e-9)
	}
	f("one cold prompt", 2, req{1, .5, 2000, 0, 2})
	f("too little that is new", 0, req{1, .5, 1023, 0, 2})
	f("warm", 0, req{1, .5, 2000, 1000, 2})
	f("together", 1.00005, req{1, .5, 2000, 0, 2}, req{1.2, .5, 600, 0, 2.00005})
	f("cold ones sum up", 1, req{1, .5, 600, 0, 2}, req{1, .5, 600, 0, 2})
	f("a small warm one is work too", 1, req{1, .5, 2000, 0, 2}, req{1, .5, 9000, 8500, 2})
	f("a big warm one spoils it", 0, req{1, .5, 2000, 0, 2}, req{1, .5, 9000, 7000, 2})
	f("since the first byte before", 3, req{1, .5, 20, 0, 2}, req{1, .5, 2000, 0, 3.5})
}

// TestLearnSlow: one worker of four is truly twice as slow.
func TestLearnSlow(t *testing.T) {
	p := upPool(t, 4)
	truth := []float64{1, 1, 2, 1}
	now := 1.0
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		for i, w := range p.fleet.workers {
			k := p.force(w, Dispatch{PromptTokens: 4000}, now)
			took := k.request.est * truth[i] * math.Exp(.2*rng.NormFloat64())
			k.FirstByte(p.after(now + took))
			k.End(p.after(now+took), judge.Outcome{Kind: judge.Answered})
		}
		now += 2
	}
	rows := p.rows(now)
	for i, r := range rows {
		near(t, p.fleet.workers[i].id+" m", r.Slow, truth[i], .25*truth[i])
	}
}

// TestLearnSpeed: the fleet finds a speed far from the default, either way.
func TestLearnSpeed(t *testing.T) {
	f := func(truth float64) {
		t.Helper()
		p := upPool(t, 2)
		now := 1.0
		for i := range 300 {
			k := p.send(i%2, Dispatch{PromptTokens: 4000}, now)
			now += k.request.est * truth
			k.FirstByte(p.after(now))
			k.End(p.after(now), judge.Outcome{Kind: judge.Answered})
			now += .1
		}
		rows := p.rows(now)
		near(t, "m", rows[0].Slow, truth, .2*truth)
	}
	f(.2)
	f(5)
	f(30)
}

// TestBadSamplesDoNotStarve: a worker that had a bad minute and gets no request after it is as good as the others after
// a while.
func TestBadSamplesDoNotStarve(t *testing.T) {
	p := upPool(t, 2)
	w := p.fleet.workers[0]
	for range 30 {
		p.fleet.speed.Learn(&w.speed, 100)
		p.fleet.speed.Value = 1
	}
	bad := p.fleet.speed.Value * w.speed.Rel
	if bad < 3 {
		t.Fatalf("m after 30 bad samples = %v; want over 3", bad)
	}
	for s := range 900 {
		p.Snapshot(Query{At: p.after(float64(s))}, nil, nil)
	}
	near(t, "rel 900 s later", w.speed.Rel, 1, .02)
}

// TestOneSampleCounts: a single one, however far off, moves a worker by 4 %.
func TestOneSampleCounts(t *testing.T) {
	p := upPool(t, 2)
	p.fleet.speed.Samples = 1000
	p.fleet.speed.Learn(&p.fleet.workers[0].speed, 1e6)
	near(t, "rel", p.fleet.workers[0].speed.Rel, math.Exp(.04), 1e-9)
	near(t, "fleet", p.fleet.speed.Value, math.Exp(.01), 1e-9)
}

// TestRates: lambda and rho of a steady load, and their decay.
func TestRates(t *testing.T) {
	p := upPool(t, 2)
	now := 0.0
	for range 3000 { // 300 s: ten a second, each of .05 s, all to one of two workers
		now += .1
		p.send(0, Dispatch{Est: .05}, now).End(p.after(now), judge.Outcome{})
	}
	near(t, "lambda", p.Lambda(p.after(now)), 5, .1)
	rows := p.rows(now)
	near(t, "rho 0", rows[0].Load, .5, .01)
	near(t, "rho 1", rows[1].Load, 0, 0)
	near(t, "lambda 30 s later", p.Lambda(p.after(now+30)), 5/math.E, .05)
	near(t, "lambda an hour later", p.Lambda(p.after(now+3600)), .5*16/3600, 1e-4) // half of what was sent since
}

// TestRatesAgree: aging in steps of a second or never is the same average.
func TestRatesAgree(t *testing.T) {
	a, b := upPool(t, 1), upPool(t, 1)
	for i := range 50 {
		at := 1 + .13*float64(i)
		for _, p := range []*Pool{a, b} {
			p.send(0, Dispatch{Est: .1}, at)
		}
		a.rows(at + .05)
	}
	ra := a.rows(40)
	rb := b.rows(40)
	near(t, "rho", ra[0].Load, rb[0].Load, 1e-9)
}

func TestMeans(t *testing.T) {
	p := upPool(t, 1)
	k := p.send(0, Dispatch{PromptTokens: 10}, 1)
	k.FirstByte(p.after(1.5))
	k.FirstByte(p.after(9)) // only the first counts
	k.End(p.after(3.5), judge.Outcome{Kind: judge.Answered, Tokens: 101})
	rows := p.rows(4)
	near(t, "TTFT", float64(rows[0].TTFT), .5, 1e-6)
	near(t, "TPOT", float64(rows[0].TPOT), .02, 1e-6)
}

func TestDeathForgets(t *testing.T) {
	p := upPool(t, 2)
	w := p.fleet.workers[0]
	k := p.force(w, Dispatch{PromptTokens: 5000}, 1)
	for range 30 {
		p.fleet.speed.Learn(&w.speed, 100)
	}
	p.kill(int(w.slot), 2)
	p.heal(int(w.slot), 3)
	rows := p.rows(3)
	r := rows[0]
	if r.Wait != 0 || r.PendingTokens != 0 || r.Load != 0 || r.Slow != rows[1].Slow || r.InFlight != 1 {
		t.Errorf("row after death = %+v; want nothing pending, m as the fleet, 1 in flight", r)
	}
	k.FirstByte(p.after(4))
	k.End(p.after(4), judge.Outcome{Kind: judge.Answered})
	if w.flight.n != 0 || w.queue.pend != 0 {
		t.Errorf("in flight %d, pend %v after the end; want 0, 0", w.flight.n, w.queue.pend)
	}
}

// TestPrefillOutlivesWorkers: what a worker was sent counts for the pool's mean when the worker is down or gone, and so
// does what other routers have sent.
func TestPrefillOutlivesWorkers(t *testing.T) {
	p := upPool(t, 2)
	want := func(what string, at, mean float64, known bool) {
		t.Helper()
		got, ok := p.Prefill(p.after(at))
		if ok != known {
			t.Errorf("%s: known is %v; want %v", what, ok, known)
		}
		near(t, what, got, mean, 1e-9)
	}
	want("nothing sent", 1, 0, false)
	p.send(0, Dispatch{Est: 3}, 1)
	p.send(1, Dispatch{Est: 1}, 1)
	want("two requests", 1, 2, true)
	p.BeginForeign(p.fleet.workers[0].key, Dispatch{Est: 5}, true, p.after(1))
	want("one more of another router", 1, 3, true)
	p.kill(0, 2)
	p.kill(1, 2)
	want("both workers are dead", 2, 3, true)
	want("a while ago", 31, 3, true)
	want("too long ago", 121, 0, false)
}
