package waiting

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/daemon/request/queue"
)

// News is a message to a place in the queue.
type News uint8

// The news.
const (
	Turn    News = iota // it has the turn
	Full                // another request has its place in the queue
	Gone                // its client left, or the router stops
	Late                // no worker had room in time
	Empty               // no worker came up in time
	Overdue             // its deadline is over
)

// Wait is that of one request, once. Its owner sets Request before Enter, and does not move it.
type Wait struct {
	queue.Request
	Before time.Duration // it has waited elsewhere, and this time is subtracted
	Stale  bool          // no worker has the weights that it asks for
	Cut    int           // the class that the strategy gave, where the key may not have it; 0 = Class is as it was given

	q      *Queue
	news   chan News
	began  time.Time
	room   time.Duration // for how long it may wait for room
	worker time.Duration // and for a worker, while none is up
	inside bool          // Enter took it, and nothing has ended that. Only the owner reads and writes it
	turn   bool          // likewise: it has the turn
	held   time.Time     // likewise: until when it waits for better; zero = it does not
}

// Enter has a place wait. empty: no worker is up that has the model; else each is full. It returns false if the queue
// is full. p must not wait already.
func (q *Queue) Enter(p *Wait, empty bool, at time.Time) bool {
	c := q.conf.Load()
	p.q, p.news, p.began = q, make(chan News, 1), at
	p.room, p.worker = max(0, c.Wait-p.Before), max(0, c.WaitEmpty-p.Before)
	p.Owner = p
	q.enter(p, empty, at)
	out, ok := q.order.Enter(&p.Request, at)
	for _, r := range out {
		r.Owner.(*Wait).news <- Full
	}
	p.inside = ok
	if !ok {
		q.leave(p)
		return false
	}
	q.tickSoon()
	q.pass(at)
	return true
}

// AtOnce reports whether the place has the turn now.
func (p *Wait) AtOnce() bool {
	select {
	case n := <-p.news:
		p.hear(n)
		return p.turn
	default:
		return false
	}
}

// Await waits for the turn. Unless it returns Turn, the place has left the queue.
func (p *Wait) Await(ctx context.Context) News {
	if !p.inside { // AtOnce has heard it
		return Full
	}
	end := p.next()
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	for {
		select {
		case n := <-p.news:
			return p.hear(n)
		case <-ctx.Done():
			p.Leave(time.Now())
			return Gone
		case now := <-timer.C:
			if p.heldUntil(now) {
				p.q.pass(now)
			}
			if next := p.next(); next.After(now) {
				timer.Reset(next.Sub(now))
				continue
			}
			_, why := p.q.end(p)
			p.Leave(now)
			return why
		}
	}
}

// next returns when the place is to be looked at: its wait is over, or its hold.
func (p *Wait) next() time.Time {
	end, _ := p.q.end(p)
	if !p.held.IsZero() && p.held.Before(end) {
		return p.held
	}
	return end
}

// heldUntil ends the hold if its time is over, and reports whether it did.
func (p *Wait) heldUntil(now time.Time) bool {
	if p.held.IsZero() || p.held.After(now) {
		return false
	}
	p.held = time.Time{}
	p.q.order.Return(&p.Request)
	return true
}

func (p *Wait) hear(n News) News {
	p.turn, p.held = n == Turn, time.Time{}
	if n == Full {
		p.inside = false
		p.q.leave(p)
	}
	return n
}

// Waits reports whether the place is in the queue.
func (p *Wait) Waits() bool { return p.inside }

// Blocked ends the turn without a worker: the place stays. empty: none is up that has the model.
func (p *Wait) Blocked(empty bool, at time.Time) {
	p.turn = false
	p.q.found(p, empty, at)
	p.q.order.Blocked(&p.Request)
	p.q.pass(at)
}

// Hold ends the turn of a request that could be served, and waits for better, most in all. Others go before it.
func (p *Wait) Hold(most time.Duration, at time.Time) {
	p.turn, p.held = false, p.began.Add(min(most, p.MayHold()))
	p.q.found(p, false, at)
	p.q.order.Hold(&p.Request)
	p.q.pass(at)
}

// MayHold returns for how long a request without a deadline may be held in all.
func (q *Queue) MayHold() time.Duration { return holdOf(q.conf.Load().Wait) }

// MayHold returns for how long the place, which has entered, may be held in all.
func (p *Wait) MayHold() time.Duration {
	most := p.q.MayHold()
	if p.Deadline.IsZero() {
		return most
	}
	return min(most, max(0, holdOf(p.Deadline.Sub(p.began))))
}

// holdOf returns how much of a wait may be a hold. It leaves enough time to find a worker.
func holdOf(wait time.Duration) time.Duration { return wait - min(wait/4, time.Second) }

// Served ends the turn, and the wait: the request has its worker. The charge ends with the worker's work.
func (p *Wait) Served(at time.Time) (c *Charge) {
	if p.inside {
		c = p.q.order.Served(&p.Request, at)
		p.Leave(at)
	}
	return c
}

// Leave ends the wait in any state.
func (p *Wait) Leave(at time.Time) {
	if !p.inside {
		return
	}
	p.inside, p.turn = false, false
	p.q.order.Leave(&p.Request, at)
	p.q.leave(p)
	p.q.pass(at)
}

// Charge is what the key of a request was charged for that is at a worker.
type Charge = queue.Charge

// Busy reports whether requests wait, or have of late. It takes no lock.
func (q *Queue) Busy(at time.Time) bool { return q.order.Busy(at) }

// Began charges the key of a request that did not wait.
func (q *Queue) Began(p *Wait, at time.Time) *Charge { return q.order.Began(&p.Request, at) }

// Waited returns how long the place has waited by then.
func (p *Wait) Waited(at time.Time) time.Duration { return max(0, at.Sub(p.began)) }

// Behind returns about how many requests come before the place, which has entered, now.
func (p *Wait) Behind() int { return p.q.Before(p) }

// Before returns about how many requests come before the place, or would if it entered q now.
func (q *Queue) Before(p *Wait) int { return q.order.Position(&p.Request) }

// Predict estimates how long the place would wait if it entered now; 0 = unknown.
func (q *Queue) Predict(p *Wait) time.Duration { return q.order.Predict(&p.Request) }
