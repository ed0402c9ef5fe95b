package worker

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// TestSignsAskForChecks: which signs ask for a health check at once, and after which a page of metrics shows whether the
// process is another one.
func TestSignsAskForChecks(t *testing.T) {
	var w watcher
	p := upPoolOf(Config{Workers: specs(9), Watcher: &w})
	w.calls = nil
	f := func(k judge.Kind, calls ...string) {
		t.Helper()
		p.send(0, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: k})
		w.want(t, calls...)
	}
	f(judge.Canceled)
	f(judge.Answered)
	f(judge.Busy)
	f(judge.Denied)
	f(judge.Failed, "check 1")
	f(judge.Late, "check 1")
	f(judge.Broken, "scrape 1", "check 1")
	f(judge.Leaving, "scrape 1", "check 1")
	f(judge.Dying, "check 1")
	f(judge.Refused, "check 1")
}

// TestSignsCountForChecks: an answer that says that the worker goes makes its next bad check its death, and a late
// connection is as good as one late check.
func TestSignsCountForChecks(t *testing.T) {
	f := func(k judge.Kind, check func(p *Pool, id uint64), want Standing) {
		t.Helper()
		p := upPool(t, 3)
		p.send(0, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: k})
		check(p, p.fleet.workers[0].number)
		if got := p.Stats(p.after(2))[0].State; got != want {
			t.Errorf("kind %d, and then a check: %v; want %v", k, got, want)
		}
	}
	ill := func(p *Pool, id uint64) { p.Ill(id, "503", p.after(2)) }
	late := func(p *Pool, id uint64) { p.Silent(id, "timeout", p.after(2)) }
	f(judge.Failed, ill, Ready)
	f(judge.Dying, ill, Down)
	f(judge.Failed, late, Ready)
	f(judge.Late, late, Silent)
}

// TestARefusedConnectionEndsWhatIsThere: nothing listens, so that nobody will end the requests of before.
func TestARefusedConnectionEndsWhatIsThere(t *testing.T) {
	c := new(clock)
	p := upPoolOf(Config{Workers: specs(2), After: c.after})
	h := &asker{clock: c}
	p.send(0, Dispatch{Holder: h}, 1).FirstByte(p.after(2))
	p.send(0, Dispatch{}, 10).End(p.after(10), judge.Outcome{Kind: judge.Refused})
	c.to(40)
	if len(h.told) == 0 {
		t.Error("a request waits on at a closed port")
	}
}

// TestALateConnectionIsLeftAlone: its accept queue is full, so it gets no more for a moment.
func TestALateConnectionIsLeftAlone(t *testing.T) {
	p := upPool(t, 3)
	p.send(0, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: judge.Late})
	if got := snap(p, "", 1.1); got != "w1 w2" {
		t.Errorf("%s; want w1 w2", got)
	}
	if got := snap(p, "", 4); got != "w0 w1 w2" {
		t.Errorf("after a moment: %s; want all", got)
	}
}

// TestWhatRefusalsShow: which refusals hold back a worker's share, and which of them are compared.
func TestWhatRefusalsShow(t *testing.T) {
	f := func(what, outcomes, want string, doubtful bool) { // a accepts, x rejects with 400, d denies, e denies as another does
		t.Helper()
		p := upPool(t, 3)
		for _, o := range outcomes {
			k := p.send(0, Dispatch{}, 1)
			switch o {
			case 'a':
				k.End(p.after(1), judge.Outcome{Kind: judge.Answered})
			case 'x':
				k.End(p.after(1), judge.Outcome{Kind: judge.Answered, Rejected: true})
			case 'e':
				k.End(p.after(1), judge.Outcome{Kind: judge.Denied})
				k.Excuse(judge.Denied, p.after(1))
			default:
				k.End(p.after(1), judge.Outcome{Kind: judge.Denied})
			}
		}
		if got := snap(p, "", 1.1); got != want {
			t.Errorf("%s: %s; want %s", what, got, want)
		}
		if got := p.fleet.endpoints[0].health.IsDoubtful(0); got != doubtful {
			t.Errorf("%s: doubtful %v; want %v", what, got, doubtful)
		}
	}
	f("one, of a worker that has accepted nothing", "d", "w1 w2", true)
	f("one, of a trusted worker", "ad", "w0 w1 w2", true)
	f("two in a row", "add", "w1 w2", true)
	f("one in which another worker agrees", "ae", "w0 w1 w2", false)
	f("two, and another worker agreed with the first", "aed", "w0 w1 w2", true)
	f("a request that it rejects is none that it accepts", "x", "w0 w1 w2", true)
}

// kindOf returns who gets requests of a class.
func kindOf(p *Pool, class uint8, at float64) (ids string) {
	_, ws, _ := p.Snapshot(Query{Class: class, At: p.after(at)}, nil, nil)
	for _, w := range ws {
		ids += w.id
	}
	return ids
}

// TestARefusedKind: a worker that refuses one kind of requests, which others accept, gets those of other kinds.
func TestARefusedKind(t *testing.T) {
	f := func(what string, accepts bool, at float64, o judge.Outcome, want Standing, others, same string) {
		t.Helper()
		p := upPool(t, 3)
		if accepts {
			p.send(0, Dispatch{Class: 5}, 1).End(p.after(1.5), judge.Outcome{Kind: judge.Answered})
		}
		o.Kind = judge.Denied
		for range 4 {
			k := p.send(0, Dispatch{Class: 9}, at)
			k.End(p.after(at), o)
			if !o.Uncompared {
				k.Confirm(o, p.after(at))
			}
		}
		if got := p.Stats(p.after(at))[0].State; got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
		if got := kindOf(p, 5, at+1); got != others {
			t.Errorf("%s: %s get another kind; want %s", what, got, others)
		}
		if got := kindOf(p, 9, at+1); got != same {
			t.Errorf("%s: %s get that kind; want %s", what, got, same)
		}
	}
	f("it accepts another kind", true, 2, judge.Outcome{}, Ready, "w0w1w2", "w1w2")
	f("it accepted another kind a minute ago", true, 70, judge.Outcome{}, Ejected, "w1w2", "w1w2")
	f("it has accepted nothing", false, 2, judge.Outcome{}, Ejected, "w1w2", "w1w2")
	f("it lacks the model", false, 2, judge.Outcome{OfModel: true}, Ready, "w0w1w2", "w1w2")
	f("nobody compares it", false, 2, judge.Outcome{Uncompared: true}, Ready, "w0w1w2", "w0w1w2")

	p := upPool(t, 2)
	p.refuse(3, true, 1)
	until := p.trialAt(0, 1)
	p.send(0, Dispatch{Class: 5}, .5).End(p.after(2), judge.Outcome{Kind: judge.Answered}) // it began before
	p.refuse(1, true, until)
	if got := p.Stats(p.after(until))[0].State; got != Ready {
		t.Errorf("the trial of one that accepts another kind: %v", got)
	}
	if got := kindOf(p, 0, until+1); got != "w1" {
		t.Errorf("after it: %s get what it refuses; want w1", got)
	}
	p.send(1, Dispatch{}, until).End(p.after(until), judge.Outcome{Kind: judge.Denied})
	if got := kindOf(p, 0, until+1); got != "w0w1" {
		t.Errorf("all refuse it: %q; want both, as nobody else takes it", got)
	}
}

// refuse has worker 0 refuse n requests. Others accept them if compared.
func (p *Pool) refuse(n int, compared bool, at float64) (last *Ticket) {
	for range n {
		last = p.send(0, Dispatch{}, at)
		last.End(p.after(at), judge.Outcome{Kind: judge.Denied})
		if compared {
			last.Confirm(judge.Outcome{Kind: judge.Denied}, p.after(at))
		}
	}
	return last
}

// TestARowOfRefusals: an accepted request ends it.
func TestARowOfRefusals(t *testing.T) {
	p := upPool(t, 3)
	p.refuse(2, true, 1)
	p.send(0, Dispatch{}, 2).End(p.after(2), judge.Outcome{Kind: judge.Answered})
	p.refuse(2, true, 3)
	if got := p.Stats(p.after(3))[0].State; got != Ready {
		t.Errorf("two, one accepted, two: %v", got)
	}
}

// TestComparisonsThatComeLate: a comparison counts for the process that refused the request, while it is up.
func TestComparisonsThatComeLate(t *testing.T) {
	f := func(what string, between, after func(p *Pool)) {
		t.Helper()
		p := upPool(t, 3)
		var all []*Ticket
		for range 3 {
			all = append(all, p.refuse(1, false, 1))
		}
		between(p)
		for _, k := range all {
			k.Confirm(judge.Outcome{Kind: judge.Denied}, p.after(7))
		}
		after(p)
		if got := p.Stats(p.after(8))[0].State; got != Ready {
			t.Errorf("%s: %v", what, got)
		}
	}
	nothing := func(*Pool) {}
	f("a new process is there", func(p *Pool) { p.kill(0, 3); p.heal(0, 5) }, nothing)
	f("it was silent, and is back", func(p *Pool) { p.hush(0, 3); p.hush(0, 5) }, func(p *Pool) { p.heal(0, 8) })
}

// TestTheTrialOfARefusal: of a worker that is set aside for its refusals. All of its refusals are compared, no other
// trial begins before the comparison, and only the comparison of the trial decides.
func TestTheTrialOfARefusal(t *testing.T) {
	p := upPool(t, 3)
	for i := range 2 {
		p.send(i, Dispatch{Class: 2}, 1).End(p.after(1), judge.Outcome{Kind: judge.Answered})
	}
	old := p.refuse(1, false, 100) // long after what it accepted
	p.refuse(3, true, 100)
	b := &p.fleet.endpoints[0].health
	if old.Confirm(judge.Outcome{Kind: judge.Denied}, p.after(101)); b.BackOff() != 2*time.Second {
		t.Errorf("the comparison of a request of before: tried again after %v; want 2 s", b.BackOff())
	}
	at := p.trialAt(0, 100)
	p.refuse(1, true, at)
	if b.BackOff() != 4*time.Second {
		t.Errorf("the comparison of the trial: tried again after %v; want 4 s", b.BackOff())
	}
	at = p.trialAt(0, at)
	trusted := p.send(1, Dispatch{Class: 2}, at)
	trusted.Doubtful(p.after(at)) // the one of this second
	k := p.send(0, Dispatch{Class: 2}, at)
	if !k.Doubtful(p.after(at)) {
		t.Error("the refusal of a trial is not compared")
	}
	k.End(p.after(at), judge.Outcome{Kind: judge.Denied})
	if got := snap(p, "", at+3); got != "w1 w2" {
		t.Errorf("the trial is not compared yet: %s; want w1 w2", got)
	}
	if got := snap(p, "", at+4.1); got != "w0 w1 w2" {
		t.Errorf("nobody compared it: %s; want another trial", got)
	}
}

// TestOnlyTheOpenerTakesItBack: a failure before the one that opened the breaker is taken back, and the worker stays
// aside.
func TestOnlyTheOpenerTakesItBack(t *testing.T) {
	p := upPool(t, 3)
	first := p.send(0, Dispatch{}, 1)
	first.End(p.after(1), judge.Outcome{Kind: judge.Failed})
	p.fail(0, inARow[judge.Failed]-1, 1, judge.Failed)
	first.Excuse(judge.Failed, p.after(1))
	if got := p.Stats(p.after(1))[0].State; got != Ejected {
		t.Errorf("%v; want ejected", got)
	}
}

// TestAFailedTrialLeavesItLeaving: a worker that is leaving is no better for a trial that fails in another way.
func TestAFailedTrialLeavesItLeaving(t *testing.T) {
	p := upPool(t, 3)
	p.fail(0, inARow[judge.Leaving], 1, judge.Leaving)
	p.send(0, Dispatch{}, 7).End(p.after(7), judge.Outcome{Kind: judge.Failed})
	if s := p.Stats(p.after(7))[0]; s.State != Draining || s.Ejections != 0 {
		t.Errorf("%v, %d ejections; want draining, none", s.State, s.Ejections)
	}
}

// TestSignsAtADeadWorker: what a process breaks off as it dies does not count against the next one.
func TestSignsAtADeadWorker(t *testing.T) {
	p := upPool(t, 3)
	var all []*Ticket
	for range inARow[judge.Broken] {
		all = append(all, p.send(0, Dispatch{}, 1))
	}
	p.kill(0, 2)
	for _, k := range all {
		k.End(p.after(2), judge.Outcome{Kind: judge.Broken})
	}
	p.heal(0, 3)
	p.fail(0, 1, 4, judge.Broken)
	if got := p.Stats(p.after(4))[0].State; got != Ready {
		t.Errorf("%v after one broken connection", got)
	}
}
