package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/upstream"
	"github.com/warmpath/warmpath/daemon/worker"
)

// maxAttempts bounds how many workers get a request that somebody may already have begun to work on. Workers that cannot
// be connected to do not count: they have seen nothing of it.
const maxAttempts = 3

// Why an attempt is given up by us.
var (
	errLate     = errors.New("no first byte within first_byte_retry")
	errDown     = errors.New("went down and sent nothing for down_grace")
	errDraining = errors.New("the router is stopping")
)

// send tries the workers in the order of the choice until one gives an answer that can go to the client. Up to then the
// client has seen nothing.
func (e *exchange) send(ctx context.Context) (out *Outbound, streaming bool) {
	r := &e.room.request
	defer func() { *r = upstream.Request{} }() // a stream would keep it for minutes
	*r = upstream.Request{Method: e.in.Method, Path: e.target(), Header: e.header(), Body: e.in.Body, Tail: e.in.Tail, TailLength: e.in.Left}
	last := faultUpstream
	order, seen, again := e.result.Order, 0, false
	tried := e.room.tried[:0]
	failed := "" // why the last worker that was tried brought nothing; "" = none failed
	for i := 0; ; i++ {
		if i == len(order) { // who was left out of the choice, in slow start or full then
			if order, i = e.others(tried), 0; len(order) == 0 {
				e.logNobodyLeft(failed, tried)
				break
			}
		}
		row := int(order[i])
		if failed != "" {
			e.retry(failed, tried[len(tried)-1], e.view.workers[row])
		}
		failed = ""
		tried = append(tried, e.view.workers[row])
		other := i < len(order)-1 && seen < maxAttempts-1
		e.another = other
		a, why := e.attempt(ctx, row, r, other)
		if why == nil {
			if out, why = e.answer(a, row, other || seen < maxAttempts-1 && !e.looked); why == nil {
				return out, true
			}
		}
		if ctx.Err() != nil {
			return e.abandoned(ctx), false
		}
		if why.reason != "full" || seen == 0 {
			last = why.fault
		}
		if !why.unseen {
			seen++
		}
		if why.final || seen == maxAttempts || e.consumed() || !e.mayRetry(why) {
			break
		}
		if why.reason != "full" { // that is no failure
			failed = why.reason
		}
		if why.silent && !again && !other { // the worker may just have closed an idle connection
			again = true
			i--
		}
	}
	return e.refuse(last), false
}

// others are the rows of a second look at the fleet without those that were tried, the least busy first. There is only one.
func (e *exchange) others(tried []*worker.Worker) []int32 {
	if e.looked {
		return nil
	}
	e.looked = true
	e.view.everybody(e.pool, e.req.Model, time.Now())
	var order []int32
	for i, w := range e.view.workers {
		if !slices.Contains(tried, w) {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(e.view.frame.Rows[a].InFlight, e.view.frame.Rows[b].InFlight)
	})
	e.result.Order, e.result.Row = order, -1 // the choice before names rows of a picture that is gone
	if len(order) > 0 {
		e.result.Row = int(order[0])
	}
	e.view.frame.Header.Bound = -1
	e.view.bind(e.stay.bound.Worker)
	return order
}

// failure is why an attempt brought nothing that can go to the client.
type failure struct {
	reason string // for metrics
	fault  fault  // what the client gets if nobody else can be asked
	unseen bool   // the worker saw nothing of the request
	silent bool   // it closed the connection without one byte of an answer
	final  bool   // nobody else is to be asked
	paid   bool   // the repeat has been taken from the budget
}

// mayRetry asks the pool's budget: in a storm of failures repeats must not multiply the load. What no worker has seen costs
// none anything.
func (e *exchange) mayRetry(f *failure) bool {
	if f.unseen || f.paid || e.pool.workers.MayRetry(time.Now()) {
		return true
	}
	e.d.metrics.shed.WithLabelValues(e.pool.name, "retry_budget").Inc()
	return false
}

// consumed tells whether part of the body may be gone with a failed attempt.
func (e *exchange) consumed() bool {
	b, ok := e.in.Tail.(*intake)
	return ok && b.passed
}

// abandoned ends a request whose client has left, or that outlived the drain.
func (e *exchange) abandoned(ctx context.Context) *Outbound {
	if errors.Is(context.Cause(ctx), errClientGone) {
		e.in.Seen.End = "client_gone"
		e.d.metrics.refused(e, faultGone, faultGone.status)
		return faultGone.outbound(shapeOf(e.in.Path)) // nobody reads it
	}
	return e.refuse(faultStopping)
}

// attempt is one request at one worker.
type attempt struct {
	pool   *pool
	worker *worker.Worker
	ticket *worker.Ticket
	resp   *upstream.Response
	ctx    context.Context
	life   *life                   // ctx, or nil
	cancel context.CancelCauseFunc // of ctx; nil if that is the request's own
	timer  *time.Timer
	down   atomic.Bool // it was given up, as its worker is down
	idle   atomic.Bool // it waits for the client to take what came, not for the worker
	sent   time.Time

	believed int // of the prompt's tokens, in the worker's cache when it was chosen
}

func (a *attempt) end(o worker.Outcome) { a.ticket.End(time.Now(), o) }

// GiveUp ends an attempt whose worker went down and sent nothing since. It implements [worker.Holder].
func (a *attempt) GiveUp() {
	if a.idle.Load() {
		return
	}
	a.down.Store(true)
	if a.cancel != nil {
		a.cancel(errDown)
	} else {
		a.life.interrupt(a)
	}
}

// heard stops the deadline of the first byte. It is false if that is over: then the attempt is being given up.
func (a *attempt) heard() bool {
	if a.timer == nil {
		return true
	}
	in := a.timer.Stop()
	a.timer = nil
	return in
}

// close ends the request at the worker.
func (a *attempt) close() {
	a.heard()
	if a.resp != nil {
		a.resp.Close()
	}
	if a.cancel != nil {
		a.cancel(nil)
	}
}

// newAttempt is the memory of one.
func (e *exchange) newAttempt() *attempt {
	if e.room.used {
		return new(attempt)
	}
	e.room.used = true
	return &e.room.attempt
}

// attempt sends the request to the worker of a row. If it fails the ticket has ended. more tells whether another worker can
// still be asked.
func (e *exchange) attempt(ctx context.Context, row int, r *upstream.Request, more bool) (*attempt, *failure) {
	w := e.view.workers[row]
	client := e.pool.client(w)
	if client == nil { // removed since the snapshot
		return nil, &failure{reason: "removed", fault: faultUpstream, unseen: true}
	}
	a := e.newAttempt()
	e.held = e.believed(row)
	*a = attempt{pool: e.pool, worker: w, sent: time.Now(), ctx: ctx, believed: e.held}
	wait := e.pool.firstByteRetry()
	if !more || e.late {
		wait = 0
	}
	if l, ok := ctx.(*life); ok && wait == 0 {
		a.life = l
		l.now.Store(a)
	} else {
		a.ctx, a.cancel = context.WithCancelCause(ctx)
	}
	var ok bool
	a.ticket, ok = e.pool.workers.TryBegin(w, worker.Dispatch{PromptTokens: e.length, CachedTokens: a.believed, Whole: !e.req.Stream,
		Bound: w.ID() == e.stay.bound.Worker, Holder: a}, a.sent)
	if !ok {
		a.close()
		f := faultNoWorker // it rests after failures, and its trial is another request
		if e.pool.set.Load().conf.MaxInFlight > 0 {
			f = faultFull
		}
		return nil, &failure{reason: "full", fault: f, unseen: true}
	}
	if wait > 0 {
		a.timer = time.AfterFunc(wait, func() { a.cancel(errLate) })
	}
	e.learnPrompt(w.Slot())
	resp, err := client.Do(a.ctx, r)
	if err == nil {
		a.resp = resp
		return a, nil
	}
	f, o := e.classify(a, err)
	a.end(o)
	a.close()
	return nil, f
}

// classify says what an error of the transport means for the request and for the worker.
func (e *exchange) classify(a *attempt, err error) (*failure, worker.Outcome) {
	var t net.Error
	switch cause := causeOf(a.ctx); {
	case cause == errLate:
		e.late = true
		return &failure{reason: "late", fault: faultTimeout}, worker.Outcome{Kind: worker.Broken, Err: errLate.Error()}
	case cause == errDown || cause == nil && a.down.Load():
		e.refused = e.refused || a.worker.ID() == e.stay.bound.Worker
		return &failure{reason: "worker_down", fault: faultDown}, worker.Outcome{Kind: worker.Broken, Err: errDown.Error()}
	case cause != nil:
		return &failure{final: true}, worker.Outcome{Kind: worker.Canceled}
	case errors.Is(err, upstream.ErrRequest):
		return &failure{fault: faultRequest, final: true}, worker.Outcome{Kind: worker.Canceled}
	case errors.Is(err, upstream.ErrTail):
		f := faultFraming
		if errors.Is(err, errTooLarge) {
			f = faultTooLarge
		} else if errors.Is(err, errSlowBody) {
			f = faultSlowBody
		}
		return &failure{fault: f, final: true}, worker.Outcome{Kind: worker.Canceled}
	case upstream.NoDescriptor(err):
		e.noDescriptor()
		return &failure{reason: noDescriptor, fault: faultOverload, unseen: true}, worker.Outcome{Kind: worker.Canceled}
	case upstream.NotSent(err):
		e.refused = e.refused || a.worker.ID() == e.stay.bound.Worker
		return &failure{reason: "connect", fault: faultUpstream, unseen: true}, worker.Outcome{Kind: worker.Refused, Err: inWords(err)}
	case errors.As(err, &t) && t.Timeout(): // it may still be working on it, and header_timeout is long
		return &failure{reason: "timeout", fault: faultTimeout, final: true}, worker.Outcome{Kind: worker.Broken, Err: inWords(err)}
	}
	return &failure{reason: "no_answer", fault: faultUpstream, silent: upstream.Unanswered(err)}, worker.Outcome{Kind: worker.Broken, Err: inWords(err)}
}

// inWords says what went wrong with a worker. The error itself names addresses, which pages and clients must not show.
func inWords(err error) string {
	var t net.Error
	switch {
	case upstream.NotSent(err):
		return "cannot be connected to"
	case errors.Is(err, upstream.ErrStalled):
		return "sent nothing within stream_timeout"
	case errors.As(err, &t) && t.Timeout():
		return "did not answer within header_timeout"
	}
	return "closed or reset the connection before the end of its answer"
}

// learnPrompt enters the prompt in the index at once: events and answers come too late for the next request.
func (e *exchange) learnPrompt(slot uint32) {
	for i := range e.req.Chains {
		e.space.Touch(slot, e.req.Chains[i].Hashes)
		if e.retries == 0 {
			e.pool.reuse.Note(e.req.Chains[i].Hashes, e.block)
		}
	}
}

// retry counts and logs that the request goes from one worker to the next. That may be the same one again: it closed an idle
// connection.
func (e *exchange) retry(reason string, from, to *worker.Worker) {
	e.retries++
	e.in.Seen.Retries++
	e.d.metrics.retried(e.pool.name, reason)
	if reason == noDescriptor { // that has its own line
		return
	}
	e.pool.log.Info("request goes to the next worker", "id", e.in.ID, "worker", from.ID(), "reason", reason, "next", to.ID())
}

// logNobodyLeft logs that the last of the workers has failed too: the client gets an error.
func (e *exchange) logNobodyLeft(reason string, tried []*worker.Worker) {
	if reason == "" || reason == noDescriptor {
		return
	}
	e.pool.log.Warn("no worker is left for the request: its client gets an error", "id", e.in.ID, "worker", tried[len(tried)-1].ID(),
		"reason", reason, "tried", len(tried))
}
