package admission

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/waiting"
)

// waitingBytes is what a request that waits holds beside its body and what its front has: the stack of a goroutine, 16
// KiB mostly, the exchange, what was read of the prompt, and its decision so far.
const waitingBytes = 28 << 10

// Place is the place of a request in its pool's queue. A nil turn has none.
type Place struct {
	Wait   *waiting.Wait // nil = it has not waited, or has its worker
	meter  journal.Meter
	in     *message.Inbound
	leg    bool // a prefill waits, which may outlive the client's request
	place  account.Hold
	Before time.Duration // it has waited at places that it has left, for other models too

	limit *message.Fault // the answer if it waits in vain for a limit of its key; nil = it waits for a worker
}

// Enter takes a place, or returns the reason why it got none. due is when the first token comes too late, zero =
// never; queued is how long it takes at the best worker before the request's own prefill begins.
func (t *Place) Enter(q *waiting.Queue, w *waiting.Wait, empty bool, due time.Time,
	queued time.Duration) *message.Fault {
	t.Wait = nil
	now := time.Now()
	if was := t.in.Seen.Queued; was == nil {
		t.in.Seen.Queued = &record.Queued{Priority: w.Class, Cut: w.Cut, Behind: q.Before(w), Limit: w.Limit,
			Empty: empty, Stale: w.Stale}
	} else if was.Limit != w.Limit || was.Empty != empty || was.Stale != w.Stale {
		now := *was // who has the one before may read it
		now.Limit, now.Empty, now.Stale = w.Limit, empty, w.Stale
		t.in.Seen.Queued = &now
	}
	if !due.IsZero() {
		w.Deadline = due.Add(-message.InSeconds(w.Cost))
		if w.Deadline.Before(now.Add(q.Predict(w) + queued)) {
			f := *t.dropped(waiting.Overdue)
			f.Alone = w.Deadline.Before(now) // its prefill alone takes longer
			return &f
		}
	}
	if !q.Enter(w, empty, now) {
		return t.dropped(waiting.Full)
	}
	t.in.Account.Take(&t.place, account.Queue, 1)
	t.Wait = w
	return nil
}

// Await waits until the request is dequeued. A fault means that the request has left the queue.
func (t *Place) Await(ctx context.Context) *message.Fault {
	t.slim()
	news := t.Wait.Await(ctx)
	if news == waiting.Turn {
		return nil
	}
	return t.dropped(news)
}

// slim drops what the client's request does not need from here on.
func (t *Place) slim() {
	if !t.leg {
		t.in.Account.Slim()
	}
}

// droppedFor are the answers to requests that leave the queue without a worker.
var droppedFor = [...]*message.Fault{waiting.Full: &message.FaultQueueFull, waiting.Gone: &message.FaultGone,
	waiting.Late: &message.FaultWaited, waiting.Empty: &message.FaultNoWorker, waiting.Overdue: &message.FaultOverdue}

// dropped counts that the request gets no worker, and returns the answer.
func (t *Place) dropped(n waiting.News) *message.Fault {
	t.slim() // the connection may stay open, and there may be thousands
	f := droppedFor[n]
	if t.limit != nil && n != waiting.Gone {
		f = t.limit
	}
	why := f.Dropped
	if n == waiting.Gone {
		why = f.Code
	}
	t.note(why)
	return f
}

// note counts the end of a wait.
func (t *Place) note(dropped string) {
	took := t.over(time.Now())
	t.meter.Waited(&t.in.Seen, journal.Waited{Took: took, Dropped: dropped})
}

// over records and returns how long the request has waited at its place, which it has left.
func (t *Place) over(at time.Time) (took time.Duration) {
	if t.Wait != nil {
		t.place.Release()
		took = t.Wait.Waited(at)
		t.Wait, t.Before = nil, t.Before+took
		q := *t.in.Seen.Queued // who has the one before may read it
		q.Waited += took
		t.in.Seen.Queued = &q
	}
	return took
}

// Waits reports whether the request is in the queue.
func (t *Place) Waits() bool { return t != nil && t.Wait != nil && t.Wait.Waits() }

// Served ends the wait: the request has a worker's place, or is within the limits of its key.
func (t *Place) Served(at time.Time) (c *waiting.Charge) {
	if t.Waits() {
		c = t.Wait.Served(at)
		t.note("")
	}
	return c
}

// Leave gives back the request's place in the queue, if it has one. Its next wait is shorter by this time.
func (t *Place) Leave() {
	if t.Waits() {
		now := time.Now()
		t.Wait.Leave(now)
		t.over(now)
	}
}

// NewWait returns what the queue has to know of a request that it is to take.
func NewWait(in *message.Inbound, r *prompt.Request, a *route.Ask, w *route.Weight) *waiting.Wait {
	p := &waiting.Wait{}
	p.Lane, p.Cost, p.Place, p.KV, p.Class = w.Lane, w.Prefill, w.Place, w.KV, priorityOf(in, r)
	p.Key, p.Weight, p.Flow = in.Caller.Name, in.Caller.Weight, flowOf(in, &a.Claim)
	p.Bytes = waitingBytes + in.Account.Held()
	if in.Kept == nil { // else a file has the body
		p.Bytes += int64(cap(in.Body))
	}
	p.Bytes += p.Bytes / 3 // as the collector of garbage lets the heap grow meanwhile
	return p
}

// Rate sets what a strategy says of a request that is to wait, as far as its key allows it.
func Rate(w *waiting.Wait, in *message.Inbound, class int, share float64) {
	may := in.Caller.Priority
	w.Class = max(may[0], min(class, may[1]))
	if w.Class != class {
		w.Cut = class
	}
	if share > 0 { // and a number
		w.Weight = max(leastShare, min(share, mostShare))
	}
}

// What a strategy may give a request's key of the turns, beside 1.
const leastShare, mostShare = .1, 100

// Queueing returns what a strategy sees of its pool's queue.
func Queueing(q *waiting.Queue, t *Place, at time.Time) route.Queueing {
	if q == nil {
		return route.Queueing{}
	}
	n := route.Queueing{Depth: q.Depth(), Longest: q.MayHold()}
	if n.Depth > 0 {
		n.Flows = q.Waiting()
	}
	if t.Waits() {
		n.Waited, n.Longest = t.Wait.Waited(at), t.Wait.MayHold()
	}
	return n
}

// Rest ends a turn in which the request got no worker. empty says that no worker is up, see Request.LacksWorkers.
func (t *Place) Rest(c *route.Choice, v route.Verdict, empty bool, at time.Time) {
	if v == route.Held {
		t.Wait.Hold(route.HoldFor(c), at)
		return
	}
	t.Wait.Blocked(empty, at)
}

// flowOf returns whose turns the request takes: those of its key's agent, if it names one, or of its key.
func flowOf(in *message.Inbound, c *route.Claim) string {
	switch {
	case c.Key.ID != "" && !c.Fresh && !c.Placing:
		return in.Caller.Name + "/" + session.Fingerprint(c.Key)
	case in.Caller.Name != "":
		return in.Caller.Name
	}
	return "default"
}

// priorityFields name a request's priority, greater first, before any field of its body.
var priorityFields = [...]string{"X-Warmpath-Priority", "X-Dynamo-Request-Priority"}

// priorityOf returns the class of the request in a queue, as far as its key may ask for it.
func priorityOf(in *message.Inbound, r *prompt.Request) int {
	may := in.Caller.Priority
	for _, name := range priorityFields {
		if p, ok := prompt.Priority([]byte(in.Get(name))); ok {
			return max(may[0], min(p, may[1]))
		}
	}
	p, _ := r.Urgency()
	return max(may[0], min(p, may[1]))
}

// sloFields give the milliseconds in which a client wants the first token.
var sloFields = [...]string{"X-Slo-Ttft-Ms", "X-Llm-D-Slo-Ttft-Ms"}

// FirstTokenBy returns when the request's first token comes too late; zero if it does not say.
func FirstTokenBy(in *message.Inbound, arrived time.Time) time.Time {
	for _, name := range sloFields {
		if given := in.Get(name); given != "" && milliseconds(given) > 0 {
			return arrived.Add(message.InSeconds(milliseconds(given) / 1000))
		}
	}
	return in.Deadline(arrived)
}
