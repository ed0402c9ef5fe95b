package worker

import (
	"math"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

const tokens = 100_000 // of a KV cache

func running(n int) Metrics { return Metrics{Running: n, Usage: .003, Capacity: tokens} }

// TestLoadFromElsewhere: what a page of metrics says beyond what this router has caused counts as load, in the worker's row.
func TestLoadFromElsewhere(t *testing.T) {
	busy := Metrics{Running: 32, Waiting: 60, Usage: .9, Capacity: tokens}
	f := func(what string, do func(p *Pool), at float64, inFlight int, waits float64, held int) {
		t.Helper()
		p := upPool(t, 2)
		do(p)
		r, other := p.rows(at)[0], p.rows(at)[1]
		est := p.Estimate(usualPrompt, 0)
		if r.InFlight != uint32(inFlight) || math.Abs(r.Wait/est-waits) > .1 || math.Abs(float64(r.Pending)/est-waits) > .1 {
			t.Errorf("%s: %d in flight, wait of %.2f prompts; want %d, %.2f", what, r.InFlight, r.Wait/est, inFlight, waits)
		}
		if math.Abs(float64(r.HeldTokens)-float64(held)) > .01*tokens {
			t.Errorf("%s: %d tokens held; want about %d", what, r.HeldTokens, held)
		}
		if other.InFlight != 0 || other.Wait != 0 || other.HeldTokens != 0 {
			t.Errorf("%s: the other worker's row has it too: %+v", what, other)
		}
	}
	page := func(m Metrics, at float64) func(p *Pool) { return func(p *Pool) { p.scrape(0, m, at) } }
	own := func(n int, d Dispatch, until float64, then func(p *Pool)) func(p *Pool) {
		return func(p *Pool) {
			for range n {
				k := p.send(0, d, 1)
				k.FirstByte(p.after(1))
				if until > 0 {
					defer k.End(p.after(until), judge.Outcome{Kind: judge.Answered})
				}
			}
			if until == 0 {
				then(p)
			}
		}
	}
	after := func(first, then func(p *Pool)) func(p *Pool) { return func(p *Pool) { first(p); then(p) } }
	f("direct clients", page(busy, 1), 2, 92, 60, .9*tokens)
	f("nobody", page(Metrics{Capacity: tokens}, 1), 2, 0, 0, 0)
	f("this router's own", own(3, Dispatch{PromptTokens: 100}, 0, page(running(3), 8)), 9, 3, 0, 300)
	f("its own, and one more", own(3, Dispatch{PromptTokens: 100}, 0, page(running(4), 8)), 9, 4, 0, 375)
	f("its own that ended a moment ago", after(own(3, Dispatch{}, 8, nil), page(running(3), 9)), 9, 0, 0, 0)
	f("as many, long after", after(own(3, Dispatch{}, 4, nil), page(running(3), 9)), 9, 3, 0, 300)
	f("one of several answers", own(1, Dispatch{PromptTokens: 300, Sequences: 4}, 0, page(running(4), 8)), 9, 1, 0, 300)
	f("another router's, by its messages", func(p *Pool) {
		p.BeginForeign(p.fleet.workers[0].key, Dispatch{PromptTokens: 300}, true, p.after(1)).FirstByte(p.after(1))
		p.scrape(0, running(1), 8)
	}, 9, 1, 0, 300)
	f("gone by the next page", after(page(busy, 1), page(Metrics{Capacity: tokens}, 6)), 7, 0, 0, 0)
	f("much that has come since", after(page(running(0), 1), page(busy, 6)), 7, 92, 60, .9*tokens)
	f("a little that has come since", after(page(running(0), 1), page(running(9), 6)), 7, 0, 0, 0)
	f("a little on three pages", func(p *Pool) {
		for at, n := range []int{0, 12, 9, 11} {
			p.scrape(0, running(n), float64(1+5*at))
		}
	}, 17, 9, 0, 300)
	f("by an old page", page(busy, 1), 100, 0, 0, 0)
	f("of a process that has ended", after(page(busy, 1), func(p *Pool) { p.kill(0, 2); p.heal(0, 3) }), 4, 0, 0, 0)
	f("KV alone", page(Metrics{Usage: .9, Capacity: tokens}, 1), 2, 0, 0, .9*tokens)
	f("KV of answers that are longer than expected", own(1, Dispatch{PromptTokens: 10_000}, 0,
		page(Metrics{Running: 1, Usage: .2, Capacity: tokens}, 8)), 9, 1, 0, 10_000)
	counted := busy
	counted.Prompts, counted.Steps = 1e6, 1e4
	still := func(m Metrics) func(p *Pool) {
		return func(p *Pool) {
			for at := range 3 + 1 {
				p.scrape(0, m, float64(1+at))
			}
		}
	}
	f("gauges that are left over", still(counted), 6, 0, 0, 0)
	f("gauges of a page that counts nothing", still(busy), 6, 92, 60, .9*tokens)
}

// TestLoadThatAllHave: what each worker has alike, give or take what chance makes of it, is no reason to choose.
func TestLoadThatAllHave(t *testing.T) {
	all := upPool(t, 2) // what all have alike
	all.scrape(1, running(9), 1)
	all.scrape(0, running(14), 1)
	if r := all.rows(2); r[0].InFlight != 0 || r[1].InFlight != 0 {
		t.Errorf("9 and 14: %d and %d more; want none, as chance makes as much", r[0].InFlight, r[1].InFlight)
	}
	all.scrape(0, running(60), 6)
	if r := all.rows(7); r[0].InFlight < 40 || r[1].InFlight != 0 {
		t.Errorf("9 and 60: %d and %d more; want over 40, none", r[0].InFlight, r[1].InFlight)
	}
	p := upPool(t, 2)
	p.scrape(0, Metrics{Waiting: 10, Prefills: 100, Computed: 300_000, SaysComputed: true}, 1)
	if r := p.rows(2)[0]; r.PendingTokens != 30_000 || math.Abs(r.Wait-10*3000*p.fleet.conf.c1) > 1e-6 {
		t.Errorf("prompts of 3000 tokens by the page: %d tokens, %.2f s wait", r.PendingTokens, r.Wait)
	}
	if r := p.rows(2)[0]; r.State&abi.RowStale != 0 || r.Waiting != 10 {
		t.Errorf("the page's own figures: %+v", r)
	}
}
