package worker

import "testing"

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
			p.send(0, Dispatch{}, 100).End(p.after(105), Outcome{Kind: Answered})
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
		for range proofs[Failed].requests {
			sent = append(sent, p.send(0, c.d, 100))
		}
		if c.during != nil {
			c.during(p)
		}
		for _, s := range sent {
			s.End(p.after(100+c.waited), Outcome{Kind: Canceled})
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
		p.send(0, Dispatch{}, 100).End(p.after(100+waited), Outcome{Kind: Canceled})
		if got := snap(p, "", 100.1+waited); got != want {
			t.Errorf("after %v s: %s; want %s", waited, got, want)
		}
	}
}

// TestTrialOfAHangingEngine: a client that gives up on the trial has the worker ejected for longer.
func TestTrialOfAHangingEngine(t *testing.T) {
	p := upPool(t, 2)
	p.fail(0, proofs[Failed].requests, 1, Failed)
	p.send(0, Dispatch{}, 4).End(p.after(4.1), Outcome{Kind: Canceled})
	if got := snap(p, "", 4.2); got != "w0 w1" {
		t.Errorf("a trial that shows nothing: %s; want another trial", got)
	}
	p.send(0, Dispatch{}, 5).End(p.after(20), Outcome{Kind: Canceled})
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
		for range proofs[Failed].requests {
			all = append(all, p.send(0, Dispatch{}, 100))
		}
		for _, k := range all {
			k.End(p.after(100+waited), Outcome{Kind: Canceled})
		}
		if got := p.Stats(p.after(100 + waited))[0].State; got != want {
			t.Errorf("after %v s: %v; want %v", waited, got, want)
		}
	}
}

// TestAWorkerWaitsForTheRequest: it answers nothing as the client has not sent all.
func TestAWorkerWaitsForTheRequest(t *testing.T) {
	p := upPool(t, 4)
	p.send(0, Dispatch{}, 100).End(p.after(160), Outcome{Kind: Canceled, Partly: true})
	if got := p.Stats(p.after(160))[0].State; got != Ready {
		t.Errorf("%v; want up", got)
	}
}
