package worker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// TestPausesShowNoSpeed: a stream that a pause has held up, and the worker's own figures of it, teach nothing.
func TestPausesShowNoSpeed(t *testing.T) {
	slow := 1.0 // that the request shows whose first byte came before the pause
	f := func(what string, order func(p *Pool)) {
		t.Helper()
		p := upPool(t, 2)
		m := Metrics{Steps: 1, Prefills: 10, Prefill: 1, Computed: 40_000, SaysComputed: true, TokenTimes: 10, TokenTime: .1}
		p.scrape(0, m, 1)
		for at := 2.0; at < 40; at += 2 {
			p.chat(0, at, .1, .01)
		}
		k := p.send(0, Dispatch{PromptTokens: 4000}, 50)
		k.FirstByte(p.after(51))
		was := p.Stats(p.after(51))[0]
		if order == nil {
			k.End(p.after(52), judge.Outcome{Kind: judge.Answered, Tokens: 101})
			p.send(0, Dispatch{PromptTokens: 4000}, 52)
			slow = p.Stats(p.after(52))[0].Slow
			return
		}
		late := p.send(0, Dispatch{PromptTokens: 4000}, 51)
		order(p)
		p.Woke("w0", p.after(351))
		m.Steps = 2
		p.scrape(0, m, 351.5)
		late.FirstByte(p.after(352))
		for _, end := range []*Ticket{k, late} {
			end.End(p.after(353), judge.Outcome{Kind: judge.Answered, Tokens: 101})
		}
		m.Steps, m.Prefills, m.Prefill, m.Computed, m.TokenTimes, m.TokenTime = 3, 12, 301, 48_000, 12, 6
		p.scrape(0, m, 353.5)
		is := p.Stats(p.after(354))[0]
		if was.TTFT != is.TTFT || was.TPOT != is.TPOT || is.Slow < 1 || is.Slow > slow { // it goes back a little in the 300 s
			t.Errorf("%s: TTFT %v, TPOT %v and slowness %v became %v, %v and %v", what, was.TTFT, was.TPOT, slow, is.TTFT, is.TPOT,
				is.Slow)
		}
		p.chat(0, 400, .1, .01)
		m.Steps, m.TokenTimes, m.TokenTime = 4, 13, 6.5
		p.scrape(0, m, 402)
		if got := p.Stats(p.after(403))[0].TPOT; got == is.TPOT {
			t.Errorf("%s: what came after the pause taught nothing either", what)
		}
	}
	f("no pause", nil)
	f("by an order", func(p *Pool) { p.Paused("w0", p.after(52)) })
	f("somebody else's", func(p *Pool) {
		p.scrape(0, Metrics{Steps: 1, Paused: true, Prefills: 10, Prefill: 1, Computed: 40_000, SaysComputed: true, TokenTimes: 10,
			TokenTime: .1}, 55)
	})
}

// TestAPauseThatNobodyEnds: it is logged once, with the command that ends it, and again if it begins again.
func TestAPauseThatNobodyEnds(t *testing.T) {
	var log bytes.Buffer
	p := upPoolOf(Config{Workers: specs(2), PauseMax: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil))})
	f := func(at float64, paused bool, lines int) {
		t.Helper()
		p.scrape(0, Metrics{Steps: 1, Paused: paused}, at)
		const line = `msg="worker is still paused: what paused it may have ended before it had it go on, and its requests wait" ` +
			`worker=w0 for=1m0s run="curl -X POST http://127.0.0.1:9000/resume"`
		if got := strings.Count(log.String(), line); got != lines {
			t.Errorf("after %v s: %d lines; want %d: %s", at, got, lines, log.String())
		}
		if got := p.Stats(p.after(at))[0].Forgotten; got != (paused && lines > 0 && at != 200) {
			t.Errorf("after %v s it is shown as forgotten: %v", at, got)
		}
	}
	f(1, false, 0)
	f(2, true, 0)
	f(61, true, 0)
	f(62, true, 1)
	f(100, true, 1)
	f(101, false, 1)
	f(200, true, 1)
	f(260, true, 2)
}

// TestAPageOfBefore: what a worker said of its rest before an order has changed it is not taken for news.
func TestAPageOfBefore(t *testing.T) {
	p := upPool(t, 1)
	f := func(paused bool, asked, came float64, want Standing) {
		t.Helper()
		id := p.fleet.workers[0].number
		p.Scraped(id, Page{Metrics: Metrics{Steps: 1, Paused: paused}, Took: judge.Seconds(came - asked)}, p.after(came))
		if got := p.Stats(p.after(came))[0].State; got != want {
			t.Errorf("paused %v, asked at %v s and answered at %v: %v; want %v", paused, asked, came, got, want)
		}
	}
	p.Paused("w0", p.after(10))
	f(false, 9.9, 10.1, Paused)
	f(true, 10.2, 10.3, Paused)
	p.Woke("w0", p.after(11))
	f(true, 10.9, 11.1, Ready)
	f(true, 12, 12.1, Paused) // somebody else's
	f(false, 13, 13.1, Ready)

	ended := p.Order("w0") // it is under way for a second
	p.Paused("w0", p.after(20))
	f(false, 20.1, 20.2, Paused)
	ended(p.after(21))
	f(false, 20.3, 21.1, Paused)
	f(false, 21.2, 21.3, Ready)
}

// TestAPauseIsNoLeaving: mode abort ends what runs, and the worker is not taken for one that shuts down.
func TestAPauseIsNoLeaving(t *testing.T) {
	f := func(pauses bool, want Standing) {
		t.Helper()
		p := upPool(t, 2)
		var sent []*Ticket
		for range 9 {
			sent = append(sent, p.send(0, Dispatch{}, 1))
		}
		if pauses {
			p.Paused("w0", p.after(2))
		}
		for _, k := range sent {
			k.End(p.after(2), judge.Outcome{Kind: judge.Leaving})
		}
		p.Woke("w0", p.after(3))
		if got := p.Stats(p.after(3.5))[0].State; got != want {
			t.Errorf("paused %v: %v; want %v", pauses, got, want)
		}
	}
	f(true, Ready)
	f(false, Draining)
}

// TestWhatStaysInACache: what a request leaves there is gone if the cache was emptied after it was sent, or is taken to
// be as somebody else has brought other weights, unless the engine computed it again.
func TestWhatStaysInACache(t *testing.T) {
	f := func(what string, stays bool, change func(p *Pool)) {
		t.Helper()
		p := upPool(t, 1)
		p.Updated("w0", WeightsNamed("1"), p.after(0))
		early := p.send(0, Dispatch{}, 1)
		change(p)
		if late := p.send(0, Dispatch{}, 3); early.Stays() != stays || !late.Stays() {
			t.Errorf("%s: of a request before it %v, and of one behind it %v; want %v and true", what, early.Stays(), late.Stays(), stays)
		}
	}
	f("a pause", true, func(p *Pool) { p.Paused("w0", p.after(2)) })
	f("an emptied cache", false, func(p *Pool) { p.Emptied("w0", p.after(2), p.after(2)) })
	f("a pause behind it that has emptied it", true, func(p *Pool) { p.Emptied("w0", p.after(.5), p.after(2)) })
	f("a sleep", false, func(p *Pool) { p.Slept("w0", p.after(2)) })
	f("other weights by a call", true, func(p *Pool) { p.Updated("w0", WeightsNamed("2"), p.after(2)) })
	f("older weights by a call", true, func(p *Pool) { p.Updated("w0", WeightsNamed("0"), p.after(2)) })
	f("other weights by another hand", false, func(p *Pool) {
		p.Weights(p.fleet.endpoints[0].number, WeightsNamed("2"), p.after(2))
	})
	f("weights of a call, of which the worker says first that it has them", true, func(p *Pool) {
		p.Updating("w0", WeightsNamed("2"))
		p.Weights(p.fleet.endpoints[0].number, WeightsNamed("2"), p.after(2))
		p.Updated("w0", WeightsNamed("2"), p.after(2))
	})
	f("a reset behind them that computes all again", true, func(p *Pool) {
		p.Updated("w0", WeightsNamed("2"), p.after(1.5))
		p.Emptied("w0", time.Time{}, p.after(2))
	})
}

// TestEmptiedWithoutAWord: vLLM tells of an emptied cache with the next block that it stores. So where no request runs
// the reports of the worker are dropped too.
func TestEmptiedWithoutAWord(t *testing.T) {
	f := func(name string, runs bool, do func(*Pool), want string) {
		t.Helper()
		var got []string
		hook := func(name string) func(uint32) { return func(uint32) { got = append(got, name) } }
		p := New(Config{Workers: specs(1), Caches: hooks{restarted: hook("index"), outdated: hook("reports")}}, start)
		p.heal(0, 1)
		if runs {
			p.send(0, Dispatch{}, 1)
		}
		do(p)
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %q was dropped; want %q", name, s, want)
		}
	}
	empty := func(p *Pool) { p.Emptied("w0", p.after(2), p.after(2)) }
	paused := func(p *Pool) {
		p.Paused("w0", p.after(2))
		empty(p)
	}
	f("idle", false, empty, "index reports")
	f("running", true, empty, "index")
	f("paused", true, paused, "index reports")
	f("asleep", true, func(p *Pool) { p.Slept("w0", p.after(2)) }, "index reports")
	f("paused by somebody else", false, func(p *Pool) { p.scrape(0, Metrics{Paused: true}, 2) }, "index")
}
