package exchange

// maxAttempts bounds how many workers get a request that a worker may already have begun to work on. Workers that take
// no connection do not count: they have seen nothing of it.
const maxAttempts = 3

// verdict is what follows an attempt that gave the client no answer.
type verdict uint8

const (
	tryNext  verdict = iota // another worker
	tryAgain                // the same worker once more
	giveUp                  // the client gets the last failure
)

// grade is how much of a request a worker has seen, and what that means for a repeat.
type grade uint8

const (
	gradeSeen   grade = iota // the worker may have begun to work on it
	gradeSilent              // the same, and it closed the connection without one byte of an answer
	gradeUnseen              // it saw nothing of it
	gradeFinal               // no other worker gets the request
)

// failure is why an attempt gave the client no answer.
type failure struct {
	reason reason
	fault  Fault // what the client gets if no other worker may be tried
	grade  grade
	paid   bool // the repeat has been taken from the budget already
}

// reason names a failure in metrics and logs.
type reason string

const (
	reasonNone         reason = ""
	reasonRemoved      reason = "removed"
	reasonFull         reason = "full"
	reasonLate         reason = "late"
	reasonDown         reason = "worker_down"
	reasonNoDescriptor reason = "no_descriptor" // this process had none for the connection
	reasonConnect      reason = "connect"
	reasonTimeout      reason = "timeout"
	reasonNoAnswer     reason = "no_answer"
	reason503          reason = "worker_503"
	reason500          reason = "worker_500"
	reasonHidden       reason = "hidden_failure"
	reasonForeign      reason = "foreign_answer"  // it belongs to another request
	reasonClientGone   reason = "client_gone"     // it left while the worker had the request
	reasonStopping     reason = "router_stopping" // this router, while the worker had it
)

// attempts decides what is tried after each failed attempt of a request.
type attempts struct {
	begun    int32 // workers that may have begun on it
	repeated bool  // one has been asked a second time
	last     Fault // what the client gets
}

// others reports whether another worker may be tried after the one at hand: left is how many of the order remain.
func (a *attempts) others(left int) bool { return left > 0 && a.begun < maxAttempts-1 }

// further reports others, or whether a second look at the fleet is left.
func (a *attempts) further(left int, mayWiden bool) bool {
	return a.others(left) || a.begun < maxAttempts-1 && mayWiden
}

// after returns what follows a failed attempt. consumed: part of the body is gone. left is how many of the order
// remain. pay takes a repeat from the budget.
func (a *attempts) after(f *failure, consumed bool, left int, pay func() bool) verdict {
	others := a.others(left)
	if f.reason != reasonFull || a.begun == 0 {
		a.last = f.fault
	}
	if f.grade != gradeUnseen {
		a.begun++
	}
	switch {
	case f.grade == gradeFinal, a.begun == maxAttempts, consumed:
		return giveUp
	case f.grade != gradeUnseen && !f.paid && !pay(): // in a storm of failures repeats must not multiply the load
		return giveUp
	case f.grade == gradeSilent && !a.repeated && !others: // the worker may just have closed an idle connection
		a.repeated = true
		return tryAgain
	}
	return tryNext
}
