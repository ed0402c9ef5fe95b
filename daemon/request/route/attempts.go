package route

import "github.com/warmpath/warmpath/daemon/fleet/worker"

// maxAttempts bounds how many workers get a request that a worker may already have begun to work on. Workers that take
// no connection, or refuse it because they are full, do not count: they have done nothing for it.
const maxAttempts = 3

// maxBroken bounds how many workers lose a request's connection before they answer: it may be the request that ends
// them.
const maxBroken = 2

// Attempts decides what is tried after each failed attempt of a request. The exchange and the lab keep one for each
// request, so that the lab measures the rule that serves. Not safe for concurrent use.
type Attempts struct {
	// Broken counts the workers that ended or lost the connection. The caller sets it to those of the same request when
	// it was asked before.
	Broken int32

	begun    int32          // workers that may have begun on it
	repeated bool           // one has been asked a second time
	lost     *worker.Worker // the last of those that Broken counts; nil = none of this request
}

// Retry is what follows an attempt that gave the client no answer.
type Retry uint8

// What may follow.
const (
	TryNext  Retry = iota // another worker
	TryAgain              // the same worker once more
	GiveUp                // the client gets the last failure
)

// Grade is how much of a request a worker has seen, and what that means for a repeat.
type Grade uint8

// The grades.
const (
	GradeSeen    Grade = iota // the worker may have begun to work on it
	GradeSilent               // the same, and it closed the connection without one byte of an answer
	GradeRefused              // it has seen it and does nothing for it
	GradeUnseen               // it saw nothing of it
	GradeFinal                // no other worker gets the request
)

// Lateness is whether a connection was not made in time, to a worker that may be busy: a full accept queue empties.
type Lateness uint8

// The kinds of lateness.
const (
	NotLate Lateness = iota
	Late             // the request waits for the worker, where no other is left
	TooLate          // it has waited for long enough
)

// Failure is what the rule needs of an attempt that gave the client no answer.
type Failure struct {
	Grade Grade
	Broke bool           // the worker ended, or lost the connection
	Late  Lateness       // no connection was made in time
	Paid  bool           // the repeat has been taken from the budget already
	By    *worker.Worker // that failed
}

// Begun reports whether a worker may have begun on the request.
func (a *Attempts) Begun() bool { return a.begun > 0 }

// Others reports whether another worker may be tried after the one at hand: left is how many of the order remain.
func (a *Attempts) Others(left int) bool { return left > 0 && a.begun < maxAttempts-1 }

// Further reports Others, or whether a second look at the fleet is left.
func (a *Attempts) Further(left int, mayWiden bool) bool {
	return a.Others(left) || a.begun < maxAttempts-1 && mayWiden
}

// After returns what follows a failed attempt. consumed: part of the body is gone. left is how many of the order
// remain. pay takes a repeat from the budget.
func (a *Attempts) After(f Failure, consumed bool, left int, pay func() bool) Retry {
	others := a.Others(left)
	a.count(&f)
	switch {
	case f.Grade == GradeFinal, a.begun == maxAttempts, a.Broken == maxBroken, consumed:
		return GiveUp
	case f.Grade != GradeUnseen && !f.Paid && !pay(): // in a storm of failures repeats must not multiply the load
		return GiveUp
	case f.Late == Late && !others: // nobody else can take it: it waits for this one
		return TryAgain
	case f.Late == TooLate && !others:
		return GiveUp
	case f.Grade == GradeSilent && !a.repeated && !others: // the worker may just have closed an idle connection
		a.repeated = true
		return TryAgain
	}
	return TryNext
}

// count counts the workers that have seen the request, or were lost with it. One that is lost twice is one.
func (a *Attempts) count(f *Failure) {
	if f.Grade == GradeSeen || f.Grade == GradeSilent || f.Grade == GradeFinal {
		a.begun++
	}
	if f.Broke && (f.By == nil || f.By != a.lost) {
		a.Broken++
		a.lost = f.By
	}
}
