package exchange

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/tokens"
)

// failure is why an attempt gave the client no answer.
type failure struct {
	reason journal.Reason
	fault  message.Fault // what the client gets if no other worker may be tried
	grade  route.Grade
	paid   bool           // the repeat has been taken from the budget already
	late   bool           // no connection was made in time
	by     *worker.Worker // that failed
	falls  names.Reason   // why another model is to serve the request; 0 = none is
	own    *ownError      // which the client gets in place of fault; nil = there is none
}

// asksAgain reports whether the same worker gets the request once more, in another way.
func (f *failure) asksAgain() bool {
	return f.reason == journal.Unfilled || f.reason == journal.Usage || f.reason == journal.Unloaded
}

// attempts keeps what the failed attempts of a request leave: what the client gets, and what they show against their
// workers until another worker shows whose fault it is. What is tried next is decided by [route.Attempts].
type attempts struct {
	route.Attempts
	choice   *route.Choice
	lesson   *tokens.Lesson // that the answer is to teach; nil = none
	mistaken bool           // a worker gave the answer to another request
	patience time.Duration  // for a worker that takes no connection, where no other is left
	since    time.Time      // the first of these was not made in time
	blamed   bool           // a 500 was blamed on the worker, not on the request: that is done once
	reloads  bool           // a worker had lost the adapter, and loads it again: that is done once
	outgrew  bool           // a worker was too short for the request, and another is tried for that
	last     message.Fault  // what the client gets
	own      *ownError      // in place of it: of the last worker that gave up with words of its own; nil = none did
	suspects []suspect
}

// ownError is a worker's own error, as the client would get it.
type ownError struct {
	message.Outbound
	worker string // its id
}

// suspect is a worker that has failed the request.
type suspect struct {
	trip    *route.Trip
	outcome judge.Outcome
}

// after keeps what the client gets for a failed attempt, and returns what follows it. consumed: part of the body is
// gone. left is how many of the order remain. pay takes a repeat from the budget.
func (a *attempts) after(f *failure, consumed bool, left int, pay func() bool) route.Retry {
	if f.reason != journal.Full || !a.Begun() {
		a.last = f.fault
	}
	if f.own != nil || f.reason == journal.Key {
		a.own = f.own
	}
	return a.After(route.Failure{Grade: f.grade, Broke: f.reason == journal.NoAnswer || f.reason == journal.Dying,
		Late: a.lateness(f), Paid: f.paid, By: f.by}, consumed, left, pay)
}

// A request waits for a connection as long as engines may be busy with anything but their port. Where somebody else can
// do without, it waits until a packet that was lost has been sent again.
const (
	latePatience = 30 * time.Second
	lateElse     = 4 * time.Second
)

// lateness returns whether the request goes on to wait for a connection.
func (a *attempts) lateness(f *failure) route.Lateness {
	now := time.Now()
	switch {
	case !f.late:
		return route.NotLate
	case a.since.IsZero():
		a.since = now
	case now.Sub(a.since) >= a.patience:
		return route.TooLate
	}
	return route.Late
}

// isRepeated reports whether a worker fails the request in a way in which another one has failed it, and excuses that
// one: the fault is the request's. A worker that is full, cannot be reached or says that it goes is one for itself, and
// two of them are two workers. The same process asked twice, perhaps at another of its ranks, excuses nobody.
func (a *attempts) isRepeated(by *worker.Worker, k judge.Kind) (again bool) {
	switch k {
	case judge.Failed, judge.Leaving, judge.Denied, judge.Broken:
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
func (a *attempts) settle(t *route.Trip, o *judge.Outcome) {
	switch {
	case o.Kind <= judge.Answered || o.Excused:
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
