package worker

import (
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// clock runs the functions that a pool gave to After, as the test moves on.
type clock struct {
	at    float64
	calls []timed
}

type timed struct {
	at float64
	f  func(time.Time)
}

func (c *clock) after(d time.Duration, f func(time.Time)) {
	c.calls = append(c.calls, timed{c.at + d.Seconds(), f})
}

// to moves on to second at.
func (c *clock) to(at float64) {
	for {
		slices.SortStableFunc(c.calls, func(a, b timed) int { return int(1e6 * (a.at - b.at)) })
		if len(c.calls) == 0 || c.calls[0].at > at {
			break
		}
		next := c.calls[0]
		c.calls = c.calls[1:]
		c.at = next.at
		next.f(start.Add(time.Duration(c.at * float64(time.Second))))
	}
	c.at = at
}

// asker is a Holder that records the second of each call, and the last one's why.
type asker struct {
	clock *clock
	told  []int
	why   Loss
}

func (a *asker) GiveUp(why Loss) { a.told, a.why = append(a.told, int(a.clock.at+.5)), why }

func (a *asker) want(t *testing.T, what string, told ...int) {
	t.Helper()
	if !slices.Equal(a.told, told) {
		t.Errorf("%s: told at %v s; want %v", what, a.told, told)
	}
}

// TestDownGrace follows requests in flight at a worker through its falls.
func TestDownGrace(t *testing.T) {
	var c clock
	p := upPoolOf(Config{Workers: specs(2), After: c.after})
	w := p.fleet.workers[0]
	begin := func() (*asker, *Ticket) {
		a := &asker{clock: &c}
		return a, p.force(w, Dispatch{PromptTokens: 10, Holder: a}, c.at)
	}
	end := func(k *Ticket, kind judge.Kind) { k.End(p.after(c.at), judge.Outcome{Kind: kind}) }
	fall := func() { end(p.force(w, Dispatch{}, c.at), judge.Refused) }
	c.to(1)
	silent, k1 := begin()
	flowing, k2 := begin()
	ended, k3 := begin()
	fall()
	c.to(1.001)
	after, k4 := begin() // as Config.Panic sends them
	end(k3, judge.Answered)
	c.to(11)
	k2.Flow(p.after(11))
	c.to(20)
	silent.want(t, "19 s after the fall")
	c.to(23.4)
	silent.want(t, "without a byte", 21, 22, 23)
	end(k1, judge.Broken)
	c.to(32.5)
	silent.want(t, "ended", 21, 22, 23)
	flowing.want(t, "31.5 s after the fall, 21.5 after the last byte", 31, 32)
	ended.want(t, "ended in the grace")
	after.want(t, "sent after the fall")
	end(k2, judge.Broken)
	end(k4, judge.Broken)

	p.heal(0, 33)
	c.to(38)
	back, k5 := begin()
	fall()
	c.to(53)
	p.heal(0, 53)
	c.to(83)
	back.want(t, "the worker came back in the grace")
	fall()
	c.to(102)
	back.want(t, "19 s after the second fall")
	c.to(103)
	back.want(t, "20 s after the second fall", 103)
	end(k5, judge.Broken)
	if w.flight.First != nil || w.flight.Last != nil {
		t.Error("tickets are left in the worker's flight")
	}
	c.to(200)
	if len(c.calls) > 0 {
		t.Errorf("%d calls are still to come for a worker without requests", len(c.calls))
	}
}

// TestDownGraceOfARemovedWorker: its health counts until its last request has ended, and not after that.
func TestDownGraceOfARemovedWorker(t *testing.T) {
	var c clock
	watcher := new(watcher)
	p := upPoolOf(Config{Workers: specs(2), After: c.after, Watcher: watcher})
	a := &asker{clock: &c}
	w := p.fleet.workers[0]
	k := p.force(w, Dispatch{Holder: a}, 1)
	p.Update(specs(2)[1:], p.after(2))
	watcher.want(t, "watch 1", "watch 2", "health 1")
	c.to(60)
	p.Healthy(w.number, p.after(60))
	a.want(t, "a removed worker that is healthy")
	p.Dead(w.number, "gone", p.after(60))
	c.to(79)
	p.Dead(w.number, "gone", p.after(79))
	a.want(t, "before the grace is over")
	c.to(81)
	a.want(t, "after it", 80, 81)
	k.End(p.after(81), judge.Outcome{Kind: judge.Broken})
	if k.Silent() {
		t.Error("a ticket is silent whose holder was called")
	}
	watcher.want(t, "unwatch 1")
	p.Healthy(w.number, p.after(90)) // comes late, for no worker
	if got := snap(p, "", 90); got != "w1" {
		t.Errorf("the fleet is %s; want w1", got)
	}
}

// TestDownGraceInPanic: with no worker up, Config.Panic distrusts the health checks, so no request is given up.
func TestDownGraceInPanic(t *testing.T) {
	var c clock
	p := upPoolOf(Config{Workers: specs(2), After: c.after, Panic: true})
	a := &asker{clock: &c}
	k := p.send(0, Dispatch{Holder: a}, 0)
	p.kill(0, 1)
	p.kill(1, 1)
	c.to(60)
	a.want(t, "nobody is up")
	p.heal(1, 60.5)
	c.to(62)
	if len(a.told) == 0 {
		t.Error("not told though another worker is up again")
	}
	k.End(p.after(63), judge.Outcome{Kind: judge.Broken})
}
