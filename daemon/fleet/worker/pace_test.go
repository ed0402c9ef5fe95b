package worker

import (
	"math"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// teller makes a worker's metrics as its engine would count them.
type teller struct {
	requests, seconds, tokens, hits float64
	old                             bool // before 0.19: no computed tokens
}

// serve adds n requests with that many new tokens each, at perToken seconds a token.
func (s *teller) serve(n, tokens int, perToken float64) {
	s.requests += float64(n)
	s.tokens += float64(n * tokens)
	s.seconds += float64(n*tokens) * perToken
}

func (s *teller) page() Metrics {
	m := Metrics{Prefills: s.requests, Prefill: s.seconds, Prompts: s.tokens + s.hits, Hits: s.hits,
		TokenTime: s.requests * .02, TokenTimes: s.requests}
	if !s.old {
		m.Computed, m.SaysComputed = s.tokens, true
	}
	return m
}

// scrapeAll reads every worker's page, once a second from second 'from' to 'to', each time after a call of serve.
func scrapeAll(p *Pool, from, to int, tellers []*teller, serve func(second int)) {
	for at := from; at < to; at++ {
		serve(at)
		for i, s := range tellers {
			p.scrape(i, s.page(), float64(at))
			p.mu.Lock()
			p.fleet.age(sec(float64(at)))
			p.mu.Unlock()
		}
	}
}

func slowness(p *Pool, at float64) (m []float64) {
	rows := p.rows(at)
	for _, r := range rows {
		m = append(m, r.Slow)
	}
	return m
}

const fast = 1. / 15000

// A worker's own figures show that it is slow, and nothing else does if no answer is streamed.
func TestToldWhoIsSlow(t *testing.T) {
	for _, old := range []bool{false, true} {
		p, s := upPool(t, 3), []*teller{{old: old}, {old: old}, {old: old}}
		scrapeAll(p, 1, 7, s, func(int) {
			for i, w := range s {
				w.serve(2, 2000, []float64{fast, fast, 8 * fast}[i])
				w.hits += 500
			}
		})
		m := slowness(p, 7)
		if m[0] < .8 || m[0] > 1.25 || m[1] < .8 || m[1] > 1.25 || m[2] < 6 || m[2] > 9 {
			t.Errorf("old %v: slowness %.2f; want about 1, 1, 8", old, m)
		}
		near(t, "TPOT", p.fleet.workers[0].signs.PerToken().Value, .02, 1e-9)
		if p.fleet.speed.Value != 1 {
			t.Errorf("the fleet's speed is %v; want it left alone", p.fleet.speed.Value)
		}
	}
}

// Equal figures of all workers make no difference, as in a fleet that is a hundred times faster, or under load.
func TestToldIsRelative(t *testing.T) {
	p, s := upPool(t, 4), []*teller{{}, {}, {}, {}}
	scrapeAll(p, 1, 30, s, func(at int) {
		for i, w := range s {
			w.serve(4, 1500, .01*fast*(1+.1*math.Sin(float64(at*7+i*3))))
		}
	})
	for _, m := range slowness(p, 30) {
		near(t, "slowness", m, 1, .15)
	}
}

// Long prompts take more a token; a worker that gets them is not slow.
func TestToldKnowsLongPrompts(t *testing.T) {
	p, s := upPool(t, 2), []*teller{{}, {}}
	scrapeAll(p, 1, 20, s, func(at int) {
		for i, tokens := range []int{2000, 60_000} {
			est := p.Estimate(tokens, 0)
			k := p.send(i, Dispatch{PromptTokens: tokens, Whole: true}, float64(at))
			k.End(p.after(float64(at)), judge.Outcome{Kind: judge.Answered})
			s[i].serve(1, tokens, est/float64(tokens))
		}
	})
	m := slowness(p, 20)
	near(t, "slowness with short prompts", m[0], 1, .05)
	near(t, "slowness with long prompts", m[1], 1, .05)
}

// Figures that are no sample, and the effect of one bad sample.
func TestToldIsNotFooled(t *testing.T) {
	f := func(what string, want float64, first func(s []*teller), then func(s []*teller)) {
		t.Helper()
		p, s := upPool(t, 2), []*teller{{}, {}}
		scrapeAll(p, 1, 2, s, func(int) { first(s) })
		scrapeAll(p, 2, 4, s, func(at int) {
			s[0].serve(1, 4000, fast)
			if at == 2 {
				then(s)
			}
		})
		near(t, what, slowness(p, 4)[1], want, .15)
	}
	both := func(s []*teller) {
		s[0].serve(1, 4000, fast)
		s[1].serve(1, 4000, fast)
	}
	none := func([]*teller) {}
	f("a process' first request", 1, none, func(s []*teller) { s[1].serve(1, 4000, 1) })
	f("short prompts", 1, both, func(s []*teller) { s[1].serve(100, 200, 1) })
	f("all cached", 1, both, func(s []*teller) { s[1].serve(1, 0, 0) })
	f("counters that run backwards", 1, both, func(s []*teller) { *s[1] = teller{requests: 1} })
	f("one that is off by a thousand", math.Exp(2.0), both, func(s []*teller) { s[1].serve(1, 4000, 1000*fast) })
}

// A worker that was slow, or was wrongly rated so, recovers: by its next figures, or by time.
func TestToldIsForgotten(t *testing.T) {
	p, s := upPool(t, 2), []*teller{{}, {}}
	scrapeAll(p, 1, 3, s, func(at int) {
		s[0].serve(1, 4000, fast)
		s[1].serve(1, 4000, fast*math.Pow(1000, float64(at-1)))
	})
	scrapeAll(p, 3, 700, s, func(int) { s[0].serve(1, 4000, fast) })
	if m := slowness(p, 700); m[1] > 1.15*m[0] {
		t.Errorf("slowness %.2f ten minutes after a bad figure; want them within near ties", m)
	}
	p.mu.Lock()
	p.fleet.drop(p.fleet.workers[1].endpoint, sec(700), "gone")
	p.mu.Unlock()
	if s := p.fleet.workers[1].speed; s.Pace.Value != 0 || s.Rel != 1 || s.Evidence != 0 {
		t.Errorf("after death: %+v; want all forgotten", s)
	}
}
