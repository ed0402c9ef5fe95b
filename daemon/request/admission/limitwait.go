package admission

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/waiting"
)

// LetIn has the limits of the caller's key let the request in. One that is over a limit waits for it, and so does one
// before which others of the key wait: the next place is theirs. A question for a job needs no place and no tokens, as
// the job has them.
func LetIn(ctx context.Context, r *Request) *message.Fault {
	var f *message.Fault
	if r.Kept != nil && r.Kept.Jobs.Follows(r.In) {
		f = r.Limits.enter(r.In)
		if f != nil && r.Limits.refused.By != limit.ByRequests {
			f, r.Limits.refused = nil, nil
		}
		return f
	}
	if r.Pool.Queue != nil && r.Pool.Queue.Waits(limitLane(r.In)) {
		f = r.Limits.behind(r.In)
	} else {
		f = r.Limits.enter(r.In)
	}
	if f == nil && r.Pool.Queue != nil {
		r.Limits.spent.Tells(waiting.Limited{Of: r.Pool.Queue, Lane: limitLane(r.In)})
	}
	if f != nil {
		return AwaitLimit(ctx, r, f)
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

// AwaitLimit has a request wait in its pool's queue until the limits of its key let it in, if they will in time. It
// returns the answer to one that they do not let in; over is the first one. It waits in a lane of its key, so that it
// takes no turn from others, and holds no place of the key and none at a worker.
func AwaitLimit(ctx context.Context, r *Request, over *message.Fault) *message.Fault {
	q := r.Pool.Queue
	if q == nil {
		return over
	}
	due := r.Arrived.Add(q.Longest())
	if d := FirstTokenBy(r.In, r.Arrived); !d.IsZero() && d.Before(due) {
		due = d
	}
	if !r.Limits.soon(due) {
		return over
	}
	t := r.Queue()
	t.limit = over
	defer func() { t.limit = nil }()
	if f := t.Enter(q, limitWait(r), false, due, 0); f != nil {
		return f
	}
	r.Journal.Waits(r.In, nil, t.Wait)
	for {
		if f := t.Await(ctx); f != nil {
			return f
		}
		now := time.Now()
		t.limit = r.Limits.enter(r.In)
		if t.limit == nil {
			r.Limits.spent.Tells(waiting.Limited{Of: q, Lane: limitLane(r.In)})
			t.Served(now)
			return nil
		}
		if !r.Limits.soon(due) {
			t.Wait.Leave(now)
			return t.dropped(waiting.Late)
		}
		t.Wait.Blocked(false, now)
	}
}

// limitWait returns what the queue has to know of a request that waits for a limit of its key.
func limitWait(r *Request) *waiting.Wait {
	w := NewWait(r.In, r.Read.Req, &route.Ask{Claim: r.Claim()}, &route.Weight{Lane: limitLane(r.In)})
	w.Entered, w.Limited, w.Limit = r.Arrived, true, r.Limits.refused.By.String()
	return w
}
