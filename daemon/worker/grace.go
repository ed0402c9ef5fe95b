package worker

import (
	"time"
)

// Holder waits for the answer to a request. GiveUp tells it that no answer is to be expected any more. It is called
// without the pool's lock, again each second until the ticket has ended, and may come when that has just happened.
type Holder interface{ GiveUp() }

// flight is the tickets of a worker that have not ended, the oldest first.
type flight struct{ oldest, newest *Ticket }

func (f *flight) push(t *Ticket) {
	if t.older = f.newest; t.older == nil {
		f.oldest = t
	} else {
		t.older.newer = t
	}
	f.newest = t
}

func (f *flight) remove(t *Ticket) {
	if t.older == nil {
		f.oldest = t.newer
	} else {
		t.older.newer = t.newer
	}
	if t.newer == nil {
		f.newest = t.older
	} else {
		t.newer.older = t.older
	}
	t.older, t.newer = nil, nil
}

const (
	askAgain = 1.0  // seconds until a holder that was told is told again
	noneDue  = 1e18 // seconds: no ticket is waited for
)

// graceFrom begins the grace of the requests in flight at w, which has just gone down. A process that shuts down closes
// its port first and may answer what it has for as long as it likes, so a silent request is not given up at once; one
// that hangs while it shuts down keeps its connections open, so without an end to it a request would wait for
// header_timeout. The caller holds p.mu.
func (p *Pool) graceFrom(w *Worker) {
	if w.flight.oldest == nil {
		return
	}
	fell := w.health.fell
	p.hooks.After(p.conf().DownGrace, func(now time.Time) { p.giveUp(w, fell, now) })
}

// giveUp tells the holders whose grace is over, and comes back when the next one's is. A worker that came up again has
// ended it, and its next fall begins another.
func (p *Pool) giveUp(w *Worker, fell float64, then time.Time) {
	now := p.sec(then)
	p.mu.Lock()
	var late []Holder
	next := noneDue
	if w.health.fell == fell {
		late, next = p.overdue(w, now)
	}
	p.mu.Unlock()
	for _, h := range late {
		h.GiveUp()
	}
	if next < noneDue {
		p.hooks.After(max(time.Millisecond, seconds(next-now)), func(then time.Time) { p.giveUp(w, fell, then) })
	}
}

// overdue lists the holders to tell, and when to look next. What was sent after the fall was sent all the same, to a
// worker that is taken for better than its health (Config.Panic): it waits on. The caller holds p.mu.
func (p *Pool) overdue(w *Worker, now float64) (late []Holder, next float64) {
	c := p.conf()
	next = noneDue
	blind := c.Panic && p.up == 0 // the health checks are not believed
	for t := w.flight.oldest; t != nil; t = t.newer {
		if t.holder == nil || t.at > w.health.fell {
			continue
		}
		since := max(w.health.fell, time.Duration(t.flow.Load()).Seconds())
		due := since + c.DownGrace.Seconds()
		if due <= now {
			due = now + askAgain
			if !blind {
				late = append(late, t.holder)
			}
		}
		next = min(next, due)
	}
	return late, next
}

// checkedGone takes the result of a check of a removed worker. Only the grace of its requests hangs on it: nobody else
// is told. The caller holds p.mu.
func (p *Pool) checkedGone(w *Worker, now time.Time, why string, fatal bool) {
	h := &w.health
	switch {
	case why == "":
		h.silent, h.fell, h.state = 0, 0, up
	case p.dead(w, now, fatal) && h.fell == 0:
		h.state, h.fell = down, p.sec(now)
		p.graceFrom(w)
	}
}
