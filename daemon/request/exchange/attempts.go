package exchange

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// maxAttempts bounds how many workers get a request that a worker may already have begun to work on. Workers that take
// no connection, or refuse it because they are full, do not count: they have done nothing for it.
const maxAttempts = 3

// maxBroken bounds how many workers lose a request's connection before they answer: it may be the request that ends
// them.
const maxBroken = 2

// maxLate bounds how often a connection is tried anew that was not made in time, where no other worker is left: a full
// accept queue empties. By default a try takes connect_timeout, a second, so that a client waits five.
const maxLate = 4

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
	gradeSeen    grade = iota // the worker may have begun to work on it
	gradeSilent               // the same, and it closed the connection without one byte of an answer
	gradeRefused              // it has seen it and does nothing for it
	gradeUnseen               // it saw nothing of it
	gradeFinal                // no other worker gets the request
)

// failure is why an attempt gave the client no answer.
type failure struct {
	reason reason
	fault  Fault // what the client gets if no other worker may be tried
	grade  grade
	paid   bool           // the repeat has been taken from the budget already
	by     *worker.Worker // that failed
	own    *ownError      // which the client gets in place of fault; nil = there is none
}

// reason names a failure in metrics and logs.
type reason string

const (
	reasonNone         reason = ""
	reasonRemoved      reason = "removed"
	reasonFull         reason = "full"
	reasonLate         reason = "late"
	reasonDown         reason = "worker_down"
	reasonMoved        reason = "worker_silent"
	reasonNoDescriptor reason = "no_descriptor" // this process had none for the connection
	reasonConnect      reason = "connect"
	reasonConnectLate  reason = "connect_late"
	reasonTimeout      reason = "timeout"
	reasonNoAnswer     reason = "no_answer"
	reasonBusy         reason = "worker_busy"
	reasonDenied       reason = "worker_refused"
	reasonKey          reason = "worker_key_refused"
	reason500          reason = "worker_500"
	reasonDying        reason = "worker_dying"
	reasonHidden       reason = "hidden_failure"
	reasonTooShort     reason = "too_short"       // of the worker's max_model_len, by its own answer
	reasonForeign      reason = "foreign_answer"  // it belongs to another request
	reasonClientGone   reason = "client_gone"     // it left while the worker had the request
	reasonStopping     reason = "router_stopping" // this router, while the worker had it
)

// attempts decides what is tried after each failed attempt of a request, and keeps what the attempts show against their
// workers until another worker shows whose fault it is.
type attempts struct {
	begun    int32          // workers that may have begun on it
	late     int32          // connections that were not made in time, to workers beside which there was no other
	broken   int32          // of them, and of those before, those that ended or lost the connection
	repeated bool           // one has been asked a second time
	blamed   bool           // a 500 was blamed on the worker, not on the request: that is done once
	outgrew  bool           // a worker was too short for the request, and another is tried for that
	last     Fault          // what the client gets
	own      *ownError      // in place of it: of the last worker that gave up with words of its own; nil = none did
	lost     *worker.Worker // the last of those that broken counts; nil = none of this request
	suspects []suspect
}

// ownError is a worker's own error, as the client would get it.
type ownError struct {
	Outbound
	worker string // its id
}

// suspect is a worker that has failed the request.
type suspect struct {
	trip    *route.Trip
	outcome worker.Outcome
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
	a.count(f)
	switch {
	case f.grade == gradeFinal, a.begun == maxAttempts, a.broken == maxBroken, consumed:
		return giveUp
	case f.grade != gradeUnseen && !f.paid && !pay(): // in a storm of failures repeats must not multiply the load
		return giveUp
	case f.reason == reasonConnectLate && !others && a.late < maxLate: // nobody else can take it: it waits for this one
		a.late++
		return tryAgain
	case f.grade == gradeSilent && !a.repeated && !others: // the worker may just have closed an idle connection
		a.repeated = true
		return tryAgain
	}
	return tryNext
}

// count keeps what a failure leaves: what the client gets, and how many workers have seen the request or were lost.
func (a *attempts) count(f *failure) {
	if f.reason != reasonFull || a.begun == 0 {
		a.last = f.fault
	}
	if f.own != nil || f.reason == reasonKey {
		a.own = f.own
	}
	if f.grade == gradeSeen || f.grade == gradeSilent || f.grade == gradeFinal {
		a.begun++
	}
	if (f.reason == reasonNoAnswer || f.reason == reasonDying) && (f.by == nil || f.by != a.lost) {
		a.broken++
		a.lost = f.by
	}
}

// isRepeated reports whether a worker fails the request in a way in which another one has failed it, and excuses that
// one: the fault is the request's. A worker that is full, cannot be reached or says that it goes is one for itself, and
// two of them are two workers. The same process asked twice, perhaps at another of its ranks, excuses nobody.
func (a *attempts) isRepeated(by *worker.Worker, k worker.Kind) (again bool) {
	switch k {
	case worker.Failed, worker.Leaving, worker.Denied, worker.Broken:
	default:
		return false
	}
	for i := range a.suspects {
		if s := &a.suspects[i]; s.outcome.Kind == k && s.trip.Worker().Endpoint() != by.Endpoint() {
			s.trip.Excuse(k, time.Now())
			again = true
		}
	}
	return again
}

// settle decides whether the outcome of an attempt is held against its worker, before the attempt's trip ends.
func (a *attempts) settle(t *route.Trip, o *worker.Outcome) {
	switch {
	case o.Kind <= worker.Answered || o.Excused:
	case a.isRepeated(t.Worker(), o.Kind):
		o.Excused = true
	default:
		a.suspects = append(a.suspects, suspect{trip: t, outcome: *o})
	}
}

// accepted records that another worker has accepted the request: those that refused it are the ones at fault.
func (a *attempts) accepted() {
	for i := range a.suspects {
		a.suspects[i].trip.Confirm(a.suspects[i].outcome, time.Now())
	}
}
