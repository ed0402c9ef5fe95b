package exchange

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Why the router itself gives an attempt up.
var (
	errLate = errors.New("no first byte within first_byte_retry")
	errDown = errors.New("went down and sent nothing for down_grace")

	errUnfilled = errors.New("the prefiller failed, and the decoder waits for it")
)

// attempt is one request at one worker.
type attempt struct {
	trip   route.Trip
	place  account.Hold       // at the worker, until the trip has ended
	resp   *upstream.Response // &answer once the head is there; nil before
	answer upstream.Response
	ctx    context.Context
	life   *message.Life           // ctx, or nil
	number uint32                  // in life
	handed bool                    // the worker was told that another one computes the prompt, or has
	faulty bool                    // an earlier prefill of the request has failed: what fails now is the worker
	paired bool                    // the end of another request may end it: deadline says so
	cancel context.CancelCauseFunc // of ctx; nil if that is the request's own
	timer  *time.Timer             // of the first byte's deadline; nil = there is none, or it was stopped

	deadline atomic.Uint32 // of the first byte: what has become of it

	waits atomic.Uint32 // for whom it waits
	given atomic.Uint32 // why GiveUp ended it
	// payer has the budget for another worker if this one is only silent. nil = the request stays: nobody else may have
	// it, or it was moved before, so that it may be what keeps its workers busy.
	payer *worker.Pool
}

// For whom an attempt waits.
const (
	forAnswer uint32 = iota // the worker, and the client has nothing yet
	forClient               // the client, which takes what came
	forMore                 // the worker, which goes on with its answer
)

// Why GiveUp has ended an attempt.
const (
	notGiven    uint32 = iota // it has not
	givenDead                 // the worker is down
	givenSilent               // the worker does not answer its health checks
)

// What has become of the deadline of an attempt's first byte.
const (
	deadlineAhead  uint32 = iota // or it passed without a repeat in the budget
	deadlineKept                 // the first byte came before it, or the attempt ended
	deadlineMissed               // it ended the attempt
)

// begin sets the context of an attempt. An attempt that can be ended alone has one of its own: one with a deadline,
// or of a request that has no [Life].
func (a *attempt) begin(ctx context.Context, deadline bool) {
	a.ctx = ctx
	if l, ok := ctx.(*message.Life); ok && !deadline {
		a.life, a.number = l, l.BeginAttempt()
		return
	}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
}

// limit sets the deadline of the first byte. It ends the attempt if pay then gets a repeat from the budget. If not, no
// other worker could be tried, and the attempt goes on.
func (a *attempt) limit(wait time.Duration, pay func() bool) {
	a.timer = time.AfterFunc(wait, func() {
		if pay() && a.deadline.CompareAndSwap(deadlineAhead, deadlineMissed) {
			a.cancel(errLate)
		}
	})
}

// GiveUp ends an attempt whose worker went down and has sent nothing since. If the worker is only silent, it ends the
// attempt only where another worker can take the request: what has begun is never given up for silence, as the worker
// may go on with it. It implements [worker.Holder].
func (a *attempt) GiveUp(dead bool) {
	waits, why := a.waits.Load(), givenDead
	if waits == forClient {
		return
	}
	if !dead {
		if waits == forMore || a.given.Load() != notGiven || a.payer == nil || !a.payer.MayRetry(time.Now()) {
			return
		}
		why = givenSilent
	}
	a.given.Store(why)
	if a.cancel != nil {
		a.cancel(errDown)
	} else {
		a.life.Interrupt(a.number)
	}
}

// stopTimer stops the deadline of the first byte. It returns false if the deadline has ended the attempt, or does now.
func (a *attempt) stopTimer() bool {
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

// endTrip ends the trip: its worker has nothing of the request any more.
func (a *attempt) endTrip(o *judge.Outcome, e route.End) route.Usage {
	defer a.place.Release()
	return a.trip.End(o, e)
}

// close ends the request at the worker.
func (a *attempt) close() {
	a.stopTimer()
	if a.resp != nil {
		a.resp.Close()
	}
	if a.cancel != nil {
		a.cancel(nil)
	}
}

// withdraw ends an attempt whose worker gets nothing of the request.
func (a *attempt) withdraw() {
	a.endTrip(&judge.Outcome{Kind: judge.Canceled}, route.End{At: time.Now()})
	a.close()
}

// diagnose returns what the transport's error means for the request and for the worker.
func (a *attempt) diagnose(err error) (*failure, judge.Outcome) {
	var t net.Error
	switch cause := message.CauseOf(a.ctx); {
	case cause == errUnfilled:
		return &failure{reason: journal.Unfilled, fault: message.FaultUpstream, grade: route.GradeUnseen},
			judge.Outcome{Kind: judge.Canceled}
	case cause == errLate, cause == nil && err == errLate: // the timer has not ended the context yet
		return &failure{reason: journal.Late, fault: message.FaultTimeout, paid: true},
			judge.Outcome{Kind: judge.Broken, Err: errLate.Error()}
	case (cause == errDown || cause == nil) && a.given.Load() == givenSilent: // nothing is known against the worker
		return &failure{reason: journal.Moved, fault: message.FaultDown, paid: true}, judge.Outcome{Kind: judge.Canceled}
	case cause == errDown || cause == nil && a.given.Load() == givenDead:
		return &failure{reason: journal.Down, fault: message.FaultDown},
			judge.Outcome{Kind: judge.Broken, Err: errDown.Error()}
	case cause != nil:
		return &failure{grade: route.GradeFinal}, judge.Outcome{Kind: judge.Canceled}
	case errors.Is(err, upstream.ErrRequest):
		return &failure{fault: message.FaultRequest, grade: route.GradeFinal}, judge.Outcome{Kind: judge.Canceled}
	case errors.Is(err, upstream.ErrTail):
		return &failure{fault: message.BodyFault(err), grade: route.GradeFinal}, judge.Outcome{Kind: judge.Canceled}
	case upstream.NoDescriptor(err):
		return &failure{reason: journal.NoDescriptor, fault: message.FaultOverload, grade: route.GradeUnseen},
			judge.Outcome{Kind: judge.Canceled}
	case upstream.Closed(err):
		return &failure{reason: journal.Connect, fault: message.FaultUpstream, grade: route.GradeUnseen},
			judge.Outcome{Kind: judge.Refused, Err: inWords(err)}
	case upstream.NotSent(err): // a packet was lost, or its accept queue is full
		inTime := !errors.As(err, &t) || !t.Timeout() // there is no way there
		return &failure{reason: journal.ConnectLate, fault: message.FaultUpstream, grade: route.GradeUnseen, late: !inTime},
			judge.Outcome{Kind: judge.Late, Err: inWords(err)}
	case errors.As(err, &t) && t.Timeout(): // it may still be working on it, and header_timeout is long
		return &failure{reason: journal.Timeout, fault: message.FaultTimeout, grade: route.GradeFinal},
			judge.Outcome{Kind: judge.Broken, Err: inWords(err)}
	}
	f := &failure{reason: journal.NoAnswer, fault: message.FaultUpstream}
	if upstream.Unanswered(err) {
		f.grade = route.GradeSilent
	}
	return f, judge.Outcome{Kind: judge.Broken, Err: inWords(err)}
}

// inWords returns what went wrong with a worker, without the error's own text: that has addresses, which pages and
// clients must not show.
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
