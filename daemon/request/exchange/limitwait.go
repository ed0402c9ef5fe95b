package exchange

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/waiting"
)

// letIn has the limits of the caller's key let the request in. One that is over a limit waits for it, and so does one
// before which others of the key wait: the next place is theirs. A question for a job needs no place and no tokens, as
// the job has them.
func letIn(ctx context.Context, r *request) *message.Fault {
	var f *message.Fault
	if r.kept != nil && r.kept.jobs.follows(r.in) {
		f = r.limits.enter(r.in)
		if f != nil && r.limits.refused.By != limit.ByRequests {
			f, r.limits.refused = nil, nil
		}
		return f
	}
	if r.pool.Queue != nil && r.pool.Queue.Waits(limitLane(r.in)) {
		f = r.limits.behind(r.in)
	} else {
		f = r.limits.enter(r.in)
	}
	if f == nil && r.pool.Queue != nil {
		r.limits.spent.Tells(waiting.Limited{Of: r.pool.Queue, Lane: limitLane(r.in)})
	}
	if f != nil {
		return awaitLimit(ctx, r, f)
	}
	return nil
}

// limitLane returns the lane of the requests that wait for a limit of the caller's key.
func limitLane(in *message.Inbound) uint64 {
	h := fnv.New64a()
	h.Write([]byte("limit\x00"))
	h.Write([]byte(in.Caller.Name))
	return h.Sum64()
}

// awaitLimit has a request wait in its pool's queue until the limits of its key let it in, if they will in time. It
// returns the answer to one that they do not let in; over is the first one. It waits in a lane of its key, so that it
// takes no turn from others, and holds no place of the key and none at a worker.
func awaitLimit(ctx context.Context, r *request, over *message.Fault) *message.Fault {
	q := r.pool.Queue
	if q == nil {
		return over
	}
	due := r.arrived.Add(q.Longest())
	if d := firstTokenBy(r.in, r.arrived); !d.IsZero() && d.Before(due) {
		due = d
	}
	if !r.limits.soon(due) {
		return over
	}
	t := r.queue()
	t.limit = over
	defer func() { t.limit = nil }()
	if f := t.enter(q, limitWait(r), false, due, 0); f != nil {
		return f
	}
	r.journal.Waits(r.in, nil, t.wait)
	for {
		if f := t.await(ctx); f != nil {
			return f
		}
		now := time.Now()
		t.limit = r.limits.enter(r.in)
		if t.limit == nil {
			r.limits.spent.Tells(waiting.Limited{Of: q, Lane: limitLane(r.in)})
			t.served(now)
			return nil
		}
		if !r.limits.soon(due) {
			t.wait.Leave(now)
			return t.dropped(waiting.Late)
		}
		t.wait.Blocked(false, now)
	}
}

// limitWait returns what the queue has to know of a request that waits for a limit of its key.
func limitWait(r *request) *waiting.Wait {
	w := newWait(r.in, r.read.req, &route.Ask{Claim: r.claim()}, &route.Weight{Lane: limitLane(r.in)})
	w.Entered, w.Limited = r.arrived, true
	return w
}
