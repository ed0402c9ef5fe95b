package attempt

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Why the router itself gives an attempt up.
var (
	errLate = errors.New("no first byte within first_byte_retry")
	errDown = errors.New("went down and sent nothing for down_grace")

	errLeaves = errors.New("is to stop soon, and another worker may go on with the answer")

	errUnfilled = errors.New("the prefiller failed, and the decoder waits for it")
)

// Attempt is one request at one worker. It is one allocation with all of its answer.
type Attempt struct {
	Trip   route.Trip   // at the worker
	place  account.Hold // there, until the trip has ended
	ctx    context.Context
	life   *message.Life           // ctx, or nil
	number uint32                  // in life
	Prompt route.Prompt            // who computes it, as the worker was told
	Faulty bool                    // KV was lost before, and computed anew: what fails now is the worker
	coming bool                    // the worker gets the request later, and others may have its last place by then
	cancel context.CancelCauseFunc // of ctx; nil if that is the request's own
	timer  *time.Timer             // of the first byte's deadline; nil = there is none, or it was stopped

	deadline atomic.Uint32 // of the first byte: what has become of it

	waits  atomic.Uint32 // for whom it waits
	given  atomic.Uint32 // the worker.Loss for which GiveUp ended it; 0 = it did not
	leaves atomic.Bool   // its worker is to stop soon: see Leave
	paired bool          // the end of another request may end it: deadline says so
	timed  bool          // another worker is asked if the first byte is late
	// payer has the budget for another worker if this one is only silent. nil = the request stays: nobody else may have
	// it, or it was moved before, so that it may be what keeps its workers busy.
	payer *worker.Pool

	response upstream.Response
	answer   stream
	out      message.Outbound
}

// For whom an attempt waits.
const (
	forAnswer uint32 = iota // the worker, and the client has nothing yet
	forClient               // the client, which takes what came
	forMore                 // the worker, which goes on with its answer
)

// What has become of the deadline of an attempt's first byte.
const (
	deadlineAhead    uint32 = iota // or it passed without a repeat in the budget
	deadlineKept                   // the first byte came before it, or the attempt ended
	deadlineMissed                 // it ended the attempt
	deadlineUnfilled               // Unfill did
)

// Begin takes a place at a worker, and reports whether there is one. beside: the prompt is computed beside the attempt,
// so that Unfill may end it.
func (a *Attempt) Begin(ctx context.Context, h *History, to route.Target, at time.Time, beside bool) bool {
	a.timed, a.coming, a.paired = h.mayBeLate(), to.Coming, beside
	if h.mayMove() {
		a.payer = h.req.Pool.Workers
	}
	a.setContext(ctx, a.timed || beside)
	if !h.choice.Send(&a.Trip, to, a, at) {
		a.close()
		return false
	}
	h.req.In.Account.Take(&a.place, account.Worker, 1)
	h.req.In.Seen.Believed, h.req.In.Seen.Live = h.choice.Believed(), a.Trip.Live()
	h.req.In.Seen.NoteHint(a.Trip.Hint().String())
	return true
}

// setContext sets the context of an attempt. An attempt that can be ended alone has one of its own: one with a
// deadline, or of a request that has no [message.Life].
func (a *Attempt) setContext(ctx context.Context, deadline bool) {
	a.ctx = ctx
	if l, ok := ctx.(*message.Life); ok && !deadline {
		a.life, a.number = l, l.BeginAttempt()
		return
	}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
}

// limit sets the deadline of the first byte. It ends the attempt if pay then gets a repeat from the budget. If not, no
// other worker could be tried, and the attempt goes on.
func (a *Attempt) limit(wait time.Duration, pay func() bool) {
	a.timer = time.AfterFunc(wait, func() {
		if pay() && a.deadline.CompareAndSwap(deadlineAhead, deadlineMissed) {
			a.cancel(errLate)
		}
	})
}

// Send sends the request to the attempt's worker and returns the client's answer, of which Finish or its stream's Close
// is the end. Or it returns why there is none; the attempt has then ended. ctx is the request's own.
func (a *Attempt) Send(ctx context.Context, h *History, to *upstream.Client,
	r *upstream.Request) (*message.Outbound, *Failure) {
	if f := a.try(ctx, h, to, r); f != nil {
		f.By, f.sent = a.Trip.Worker(), a.Trip.Sent()
		h.note(f)
		return nil, f
	}
	return &a.out, nil
}

// try is Send but for what a failure leaves.
func (a *Attempt) try(ctx context.Context, h *History, to *upstream.Client, r *upstream.Request) *Failure {
	if ctx.Err() == nil {
		if !a.arrives() {
			a.Abandon()
			return &Failure{Reason: journal.Full, Fault: message.FaultFull, Grade: route.GradeUnseen}
		}
		h.req.In.Account.Sent()
	}
	if a.timed {
		workers := h.req.Pool.Workers
		a.limit(h.req.Pool.FirstByteRetry, func() bool { return workers.MayRetry(time.Now()) })
	}
	r.Fresh = h.mistaken
	if err := to.DoInto(a.ctx, r, &a.response); err != nil {
		f, o := a.diagnose(err)
		f.Headless = true
		o.Partly = h.req.In.Tail != nil
		h.settle(&a.Trip, &o)
		a.endTrip(&o, route.End{At: time.Now()})
		a.close()
		return f
	}
	return a.start(h).receive()
}

// arrives reports whether the worker gets the request now. While its prompt was computed elsewhere, or waited to be,
// others may have taken the last places.
func (a *Attempt) arrives() bool {
	if a.coming {
		now := time.Now()
		if !a.Trip.Arrive(a.Prompt, now) {
			return false
		}
		a.Trip.Charge.From(now)
	}
	return true
}

// Against returns what the answer shows against its worker, although the client gets it; Canceled = nothing.
func (a *Attempt) Against() judge.Kind { return a.answer.against }

// GiveUp ends an attempt whose worker went down and has sent nothing since. If the worker is only silent, or rests, it
// ends the attempt only where another worker can take the request: what has begun is never given up for that, as the
// worker may go on with it. It implements [worker.Holder].
func (a *Attempt) GiveUp(why worker.Loss) {
	waits := a.waits.Load()
	if waits == forClient {
		return
	}
	if why != worker.Dead &&
		(waits == forMore || a.given.Load() != 0 || a.payer == nil || !a.payer.MayRetry(time.Now())) {
		return
	}
	a.given.Store(uint32(why))
	if a.cancel != nil {
		a.cancel(errDown)
	} else {
		a.life.Interrupt(a.number)
	}
}

// Leave has another worker go on with the answer from its next event, if that can be done: see HandOver. The worker is
// to stop soon. It may be called at any time, and by any goroutine.
func (a *Attempt) Leave() { a.leaves.Store(true) }

// stopTimer stops the deadline of the first byte. It returns false if the deadline has ended the attempt, or does now.
func (a *Attempt) stopTimer() bool {
	if a.timer == nil && !a.paired {
		return true
	}
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	a.paired = false
	return a.deadline.CompareAndSwap(deadlineAhead, deadlineKept)
}

// Unfill ends an attempt of which no byte has come, and reports whether it does: the prefiller failed, and the decoder
// waits for it.
func (a *Attempt) Unfill() bool {
	ends := a.deadline.CompareAndSwap(deadlineAhead, deadlineUnfilled)
	if ends {
		a.cancel(errUnfilled)
	}
	return ends
}

// Silent reports whether the attempt is over, its answer was read to its end, and nothing can call it late: neither its
// worker's fall, nor a context of its own, nor a deadline.
func (a *Attempt) Silent() bool { return a.out.Stream == nil && a.life != nil && a.Trip.Silent() }

// Abandon ends an attempt whose worker gets nothing of the request, or that a panic has left behind.
func (a *Attempt) Abandon() {
	a.endTrip(&judge.Outcome{Kind: judge.Canceled}, route.End{At: time.Now()})
	a.close()
}

// endTrip ends the trip: its worker has nothing of the request any more.
func (a *Attempt) endTrip(o *judge.Outcome, e route.End) record.Usage {
	defer a.place.Release()
	return a.Trip.End(o, e)
}

// close ends the request at the worker.
func (a *Attempt) close() {
	a.stopTimer()
	if a.answer.resp != nil {
		a.answer.resp.Close()
	}
	if a.cancel != nil {
		a.cancel(nil)
	}
}
