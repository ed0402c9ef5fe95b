package attempt

import (
	"errors"
	"net"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// diagnose returns what the transport's error means for the request and for the worker.
func (a *Attempt) diagnose(err error) (*Failure, judge.Outcome) {
	var t net.Error
	given := worker.Loss(a.given.Load())
	switch cause := message.CauseOf(a.ctx); {
	case cause == errUnfilled, a.deadline.Load() == deadlineUnfilled: // the context may not have ended yet
		return &Failure{Reason: journal.Unfilled, Fault: message.FaultUpstream, Grade: route.GradeUnseen},
			judge.Outcome{Kind: judge.Canceled}
	case cause == errLate, cause == nil && err == errLate: // the timer has not ended the context yet
		return &Failure{Reason: journal.Late, Fault: message.FaultTimeout, paid: true},
			judge.Outcome{Kind: judge.Broken, Err: errLate.Error()}
	case (cause == errDown || cause == nil) && given > worker.Dead: // nothing is known against the worker
		reason := journal.Moved
		if given == worker.Resting {
			reason = journal.Paused
		}
		return &Failure{Reason: reason, Fault: message.FaultDown, paid: true}, judge.Outcome{Kind: judge.Canceled}
	case cause == errDown || cause == nil && given == worker.Dead:
		return &Failure{Reason: journal.Down, Fault: message.FaultDown},
			judge.Outcome{Kind: judge.Broken, Err: errDown.Error()}
	case cause != nil:
		return &Failure{Grade: route.GradeFinal}, judge.Outcome{Kind: judge.Canceled}
	case errors.Is(err, upstream.ErrRequest):
		return &Failure{Fault: message.FaultRequest, Grade: route.GradeFinal}, judge.Outcome{Kind: judge.Canceled}
	case errors.Is(err, upstream.ErrTail):
		return &Failure{Fault: message.BodyFault(err), Grade: route.GradeFinal}, judge.Outcome{Kind: judge.Canceled}
	case upstream.NoDescriptor(err):
		return &Failure{Reason: journal.NoDescriptor, Fault: message.FaultOverload, Grade: route.GradeUnseen},
			judge.Outcome{Kind: judge.Canceled}
	case upstream.Closed(err):
		return &Failure{Reason: journal.Connect, Fault: message.FaultUpstream, Grade: route.GradeUnseen},
			judge.Outcome{Kind: judge.Refused, Err: InWords(err)}
	case upstream.NotSent(err): // a packet was lost, or its accept queue is full
		inTime := !errors.As(err, &t) || !t.Timeout() // there is no way there
		return &Failure{Reason: journal.ConnectLate, Fault: message.FaultUpstream, Grade: route.GradeUnseen, late: !inTime},
			judge.Outcome{Kind: judge.Late, Err: InWords(err)}
	case errors.As(err, &t) && t.Timeout(): // it may still be working on it, and header_timeout is long
		return &Failure{Reason: journal.Timeout, Fault: message.FaultTimeout, Grade: route.GradeFinal},
			judge.Outcome{Kind: judge.Broken, Err: InWords(err)}
	}
	f := &Failure{Reason: journal.NoAnswer, Fault: message.FaultUpstream}
	if upstream.Unanswered(err) {
		f.Grade = route.GradeSilent
	}
	return f, judge.Outcome{Kind: judge.Broken, Err: InWords(err)}
}

// InWords returns what went wrong with a worker, without the error's own text: that has addresses, which pages and
// clients must not show.
func InWords(err error) string {
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
