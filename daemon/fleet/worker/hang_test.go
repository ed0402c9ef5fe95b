package worker

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// TestHangingEngine: five clients in a row that gave up on a worker that sends nothing eject it.
func TestHangingEngine(t *testing.T) {
	for name, c := range map[string]struct {
		waited float64
		d      Dispatch
		during func(p *Pool) // after the requests were sent
		ejects bool
	}{
		"it hangs":                 {waited: 12, ejects: true},
		"clients without patience": {waited: 9},
		"answers in one piece":     {waited: 60, d: Dispatch{Whole: true}},
		"a long prompt":            {waited: 12, d: Dispatch{Est: 5}},
		"a long prompt for long":   {waited: 16, d: Dispatch{Est: 5}, ejects: true},
		"another's answer flows": {waited: 12, during: func(p *Pool) {
			p.send(0, Dispatch{}, 100).Flow(p.after(105))
		}},
		"another's answer is whole": {waited: 12, during: func(p *Pool) {
			p.send(0, Dispatch{}, 100).End(p.after(105), judge.Outcome{Kind: judge.Answered})
		}},
		"another router's answer begins": {waited: 12, during: func(p *Pool) {
			p.BeginForeign(p.fleet.workers[0].key, Dispatch{}, true, p.after(99)).FirstByte(p.after(105))
		}},
		"another router's answer began": {waited: 12, during: func(p *Pool) {
			p.PassForeign(p.fleet.workers[0].key, Dispatch{}, p.after(99), p.after(105))
		}},
		"others' long answers grow": {waited: 12, during: func(p *Pool) {
			p.scrape(0, Metrics{Queries: 100, Running: 8, Usage: .5}, 101)
			p.scrape(0, Metrics{Queries: 100, Running: 8, Usage: .501}, 102)
		}},
		"metrics show progress": {waited: 12, during: func(p *Pool) { p.scrape(0, Metrics{Queries: 200}, 105) }},
		"metrics stand still": {waited: 12, during: func(p *Pool) { p.scrape(0, Metrics{Queries: 100}, 105) },
			ejects: true},
	} {
		p := upPool(t, 4)
		p.scrape(0, Metrics{Queries: 100}, 50)
		p.send(0, Dispatch{}, 90).Flow(p.after(99)) // before
		var sent []*Ticket
		for range inARow[judge.Failed] {
			sent = append(sent, p.send(0, c.d, 100))
		}
		if c.during != nil {
			c.during(p)
		}
		for _, s := range sent {
			s.End(p.after(100+c.waited), judge.Outcome{Kind: judge.Canceled})
		}
		want := "w0 w1 w2 w3"
		if c.ejects {
			want = "w1 w2 w3"
		}
		if got := snap(p, "", 100.1+c.waited); got != want {
			t.Errorf("%s: %s; want %s", name, got, want)
		}
	}
}

// TestOnePatientClientIsEnough: each 10 s that one client waits in vain count as a failed answer.
func TestOnePatientClientIsEnough(t *testing.T) {
	for waited, want := range map[float64]string{49: "w0 w1 w2 w3", 51: "w1 w2 w3"} {
		p := upPool(t, 4)
		p.send(0, Dispatch{}, 100).End(p.after(100+waited), judge.Outcome{Kind: judge.Canceled})
		if got := snap(p, "", 100.1+waited); got != want {
			t.Errorf("after %v s: %s; want %s", waited, got, want)
		}
	}
}

// TestTrialOfAHangingEngine: a client that gives up on the trial has the worker ejected for longer.
func TestTrialOfAHangingEngine(t *testing.T) {
	p := upPool(t, 2)
	p.fail(0, inARow[judge.Failed], 1, judge.Failed)
	p.send(0, Dispatch{}, 4).End(p.after(4.1), judge.Outcome{Kind: judge.Canceled})
	if got := snap(p, "", 4.2); got != "w0 w1" {
		t.Errorf("a trial that shows nothing: %s; want another trial", got)
	}
	p.send(0, Dispatch{}, 5).End(p.after(20), judge.Outcome{Kind: judge.Canceled})
	if got := snap(p, "", 20.1); got != "w1" {
		t.Errorf("a trial that got nothing: %s", got)
	}
}

// TestWhoWaitsBehindALongPrompt: clients that leave show a hang only after the time of the prompt before theirs.
func TestWhoWaitsBehindALongPrompt(t *testing.T) {
	for waited, want := range map[float64]Standing{12: Ready, 16: Ejected} {
		p := upPool(t, 4)
		p.send(0, Dispatch{Est: 5}, 100)
		var all []*Ticket
		for range inARow[judge.Failed] {
			all = append(all, p.send(0, Dispatch{}, 100))
		}
		for _, k := range all {
			k.End(p.after(100+waited), judge.Outcome{Kind: judge.Canceled})
		}
		if got := p.Stats(p.after(100 + waited))[0].State; got != want {
			t.Errorf("after %v s: %v; want %v", waited, got, want)
		}
	}
}

// TestAWorkerWaitsForTheRequest: it answers nothing as the client has not sent all.
func TestAWorkerWaitsForTheRequest(t *testing.T) {
	p := upPool(t, 4)
	p.send(0, Dispatch{}, 100).End(p.after(160), judge.Outcome{Kind: judge.Canceled, Partly: true})
	if got := p.Stats(p.after(160))[0].State; got != Ready {
		t.Errorf("%v; want up", got)
	}
}

// TestAnEngineThatStandsStill: three pages of metrics that show no step set a worker aside whose request waits.
func TestAnEngineThatStandsStill(t *testing.T) {
	steps := func(n float64) func(p *Pool, at float64) {
		return func(p *Pool, at float64) { p.scrape(0, Metrics{Steps: n}, at) }
	}
	for name, c := range map[string]struct {
		d      Dispatch
		first  float64                   // when the first byte comes; 0 = never
		page   func(p *Pool, at float64) // each 5 s
		pages  int
		during func(p *Pool, at float64) // with each page
		ejects bool
	}{
		"a stream waits":           {pages: 3, page: steps(9), ejects: true},
		"an answer in one piece":   {d: Dispatch{Whole: true}, pages: 3, page: steps(9), ejects: true},
		"two pages":                {pages: 2, page: steps(9)},
		"a long prompt":            {d: Dispatch{Est: 6}, pages: 3, page: steps(9)},
		"a long prompt for long":   {d: Dispatch{Est: 6}, pages: 4, page: steps(9), ejects: true},
		"the answer has begun":     {first: 101, pages: 9, page: steps(9)},
		"the engine steps":         {pages: 9, page: func(p *Pool, at float64) { steps(at)(p, at) }},
		"its cache fills":          {pages: 9, page: func(p *Pool, at float64) { p.scrape(0, Metrics{Steps: 9, Usage: at / 1e3}, at) }},
		"the page counts no steps": {pages: 9, page: func(p *Pool, at float64) { p.scrape(0, Metrics{Queries: 9}, at) }},
		"another answer flows": {pages: 9, page: steps(9), during: func(p *Pool, at float64) {
			p.send(0, Dispatch{}, at).Flow(p.after(at))
		}},
		"its requests have ended": {pages: 9, page: steps(9), during: func(p *Pool, at float64) {
			p.fleet.workers[0].flight = flight{}
		}},
	} {
		p := upPool(t, 4)
		c.page(p, 50)
		p.scrape(0, Metrics{Steps: 9, Queries: 9}, 55)
		c.page(p, 60)
		k := p.send(0, c.d, 100)
		if c.first > 0 {
			k.FirstByte(p.after(c.first))
		}
		at := 100.0
		for range c.pages {
			at += 5
			if c.during != nil {
				c.during(p, at)
			}
			c.page(p, at)
			if got := snap(p, "", at+.1); !c.ejects && got != "w0 w1 w2 w3" { // set aside, it would be back later
				t.Errorf("%s: %s at %v; want all", name, got, at)
			}
		}
		if got := snap(p, "", at+.1); c.ejects && got != "w1 w2 w3" {
			t.Errorf("%s: %s; want w1 w2 w3", name, got)
		}
	}
}

// TestWhatWaitsIsMoved: requests leave an engine that stands still if they came after it had stopped, and all leave one
// that sleeps. They stay while no other worker can take them, and once the engine goes on.
func TestWhatWaitsIsMoved(t *testing.T) {
	f := func(what string, page, then Metrics, alone bool, before, after []int) {
		t.Helper()
		c := new(clock)
		p := upPoolOf(Config{Workers: specs(3), After: c.after})
		c.to(90)
		p.scrape(0, Metrics{Steps: 8}, 90)
		p.scrape(0, Metrics{Steps: 9}, 95)
		first, second := &asker{clock: c}, &asker{clock: c}
		p.send(0, Dispatch{Holder: first}, 99)
		p.send(0, Dispatch{Holder: second}, 103.5)
		if alone {
			p.kill(1, 101)
			p.kill(2, 101)
		}
		for at := 105.0; at <= 115; at += 5 {
			c.to(at)
			p.scrape(0, page, at)
		}
		c.to(116.5)
		p.scrape(0, then, 116.5)
		c.to(130)
		first.want(t, what+": the request of before", before...)
		second.want(t, what+": the later one", after...)
		if why := map[bool]Loss{false: Mute, true: Resting}[page.Asleep]; len(after) > 0 && second.why != why {
			t.Errorf("%s: it is told %v; want %v", what, second.why, why)
		}
	}
	still := Metrics{Steps: 9}
	on := Metrics{Steps: 10}
	f("it stands still", still, on, false, nil, []int{115, 116})
	f("it goes on", Metrics{Steps: 9, Usage: .1}, on, false, nil, nil)
	f("nobody else is there", still, on, true, nil, nil)
	asleep := Metrics{Steps: 9, Asleep: true}
	seconds := []int{105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116}
	f("it sleeps", asleep, on, false, nil, seconds)
	f("it sleeps, and nobody else is there", asleep, on, true, nil, nil)
}

// TestMayBePaused: a worker is asked whether it is paused if it stands still while requests wait, until it goes on.
func TestMayBePaused(t *testing.T) {
	p := upPool(t, 2)
	f := func(what string, want bool) {
		t.Helper()
		if got := p.Phase(p.fleet.workers[0].number, p.after(0)).Still; got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	p.scrape(0, Metrics{Steps: 1}, 1)
	p.scrape(0, Metrics{Steps: 1}, 2)
	f("nobody asks for anything", false)
	p.send(0, Dispatch{}, 2.5)
	f("a request has come", false)
	p.scrape(0, Metrics{Steps: 1}, 3)
	f("it waits from page to page", true)
	p.scrape(0, Metrics{Steps: 1, Asleep: true}, 4)
	f("it is paused", true)
	p.scrape(0, Metrics{Steps: 2}, 5)
	f("it goes on", false)
	p.scrape(0, Metrics{}, 6)
	p.scrape(0, Metrics{}, 7)
	f("its page counts no steps", false)
}

// TestOwnTrials: while its engine hangs, a worker whose models are known gets no client's request for a trial, but one of
// the router's own, until that shows that it works or that it takes none.
func TestOwnTrials(t *testing.T) {
	for status, want := range map[int]string{200: "w0 w1 w2 w3", 0: "w1 w2 w3", 500: "w1 w2 w3", 404: "w0 w1 w2 w3"} {
		p := upPoolOf(Config{Workers: specs(4), OwnTrials: true, HealthInterval: 2 * time.Second})
		id := p.fleet.endpoints[0].number
		p.Listed(id, []string{"sim"}, nil)
		hang(p)
		clients := func(what, want string, at float64) {
			t.Helper()
			if got := snap(p, "", at); got != want {
				t.Errorf("%d, %s: clients may go to %s; want %s", status, what, got, want)
			}
		}
		tries := func(what, want string, at float64) {
			t.Helper()
			if got := p.Phase(id, p.after(at)).Try; got != want {
				t.Errorf("%d, %s: tried with %q; want %q", status, what, got, want)
			}
		}
		tries("in the back-off", "", 113)
		clients("a trial is due", "w1 w2 w3", 115)
		tries("a trial is due", "sim", 115)
		p.Slept("w0", p.after(115))
		tries("it sleeps", "", 115)
		p.Woke("w0", p.after(115))
		p.Drain("w0", true, p.after(115))
		tries("it drains", "", 115)
		p.Drain("w0", false, p.after(115))
		p.Tried(id, status, p.after(116))
		clients("after the trial", want, 116.5)
		tries("in twice the back-off", "", 119)
		tries("after it", map[int]string{0: "sim", 500: "sim"}[status], 121)
		p.scrape(0, Metrics{Queries: 200}, 122)
		p.Tried(id, 0, p.after(122.5))
		clients("its engine makes steps", "w0 w1 w2 w3", 123)
	}
	p := upPoolOf(Config{Workers: specs(4), OwnTrials: true})
	hang(p)
	if try := p.Phase(p.fleet.endpoints[0].number, p.after(115)).Try; try != "" || snap(p, "", 115) != "w0 w1 w2 w3" {
		t.Errorf("tried with %q although its models are not known; want a client's request", try)
	}
}

// hang has clients leave a worker that did nothing for them, until it is set aside.
func hang(p *Pool) {
	p.scrape(0, Metrics{Queries: 100}, 50)
	var sent []*Ticket
	for range inARow[judge.Failed] {
		sent = append(sent, p.send(0, Dispatch{}, 100))
	}
	for i := range 4 {
		p.scrape(0, Metrics{Queries: 100}, 101+float64(i))
	}
	for _, s := range sent {
		s.End(p.after(112), judge.Outcome{Kind: judge.Canceled})
	}
}
