package attempt

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/tokens"
)

// Failure is why an attempt gave the client no answer.
type Failure struct {
	Reason   journal.Reason
	Fault    message.Fault // what the client gets if no other worker may be tried
	Grade    route.Grade
	paid     bool           // the repeat has been taken from the budget already
	Headless bool           // the worker has sent no head of an answer
	late     bool           // no connection was made in time
	By       *worker.Worker // that failed
	sent     time.Time      // when By got the request
	Falls    names.Reason   // why another model is to serve the request; 0 = none is
	Own      *OwnError      // which the client gets in place of Fault; nil = there is none
}

// AsksAgain reports whether the same worker gets the request once more, in another way.
func (f *Failure) AsksAgain() bool {
	return f.Reason == journal.Unfilled || f.Reason == journal.Usage || f.Reason == journal.Unloaded
}

// History is what the failed attempts of a request leave: what the client gets, and what they show against their
// workers until another worker shows whose fault it is.
type History struct {
	rule     route.Attempts // what is tried next
	req      *admission.Request
	choice   *route.Choice
	lesson   *tokens.Lesson // that the answer is to teach; nil = none
	mistaken bool           // a worker gave the answer to another request
	late     bool           // a worker was given up as its first byte was late: that is done once
	moved    bool           // a worker was given up because it is silent or rests: that is done once
	patience time.Duration  // for a worker that takes no connection, where no other is left
	since    time.Time      // the first of these was not made in time
	blamed   bool           // a 500 was blamed on the worker, not on the request: that is done once
	reloads  bool           // a worker had lost the adapter, and loads it again: that is done once
	outgrew  bool           // a worker was too short for the request, and another is tried for that
	Last     message.Fault  // what the client gets
	Own      *OwnError      // in place of it: of the last worker that gave up with words of its own; nil = none did
	Refused  bool           // the last worker has refused the request, and not for want of room
	suspects []suspect

	Counts func() pair.Counts // what the one that has computed the prompt held of it; nil = the worker itself computes it
}

// OwnError is a worker's own error, as the client would get it.
type OwnError struct {
	message.Outbound
	Worker string // its id
}

// suspect is a worker that has failed the request.
type suspect struct {
	trip    *route.Trip
	outcome judge.Outcome
}

// Begin prepares for the attempts of a request. deaths are the workers that have ended with it before.
func (h *History) Begin(r *admission.Request, c *route.Choice, lesson *tokens.Lesson, deaths int8) {
	h.req, h.choice, h.lesson = r, c, lesson
	h.Last = message.FaultUpstream
	h.rule.Broken = int32(deaths)
	h.patience = latePatience
	if r.Entry.Op == message.Prefilling || r.Alias.After(names.Down) != nil {
		h.patience = lateElse
	}
}

// mayBeLate reports whether another worker is asked if the first byte is late. A Tail is sent once.
func (h *History) mayBeLate() bool {
	return h.req.Pool.FirstByteRetry > 0 && h.rule.Others(h.choice.Left()) && !h.late && h.req.In.Tail == nil
}

// others reports whether another worker may be asked. It is one of the order. If waits is set, it may also be one that
// came up after the order was made, or whose first health check is still to come: after a start the first worker that
// is up is alone, and clients must not get its errors. A prefill does not wait if a decoder can do without it.
func (h *History) others(waits bool) bool {
	left := h.choice.Left()
	switch {
	case left > 0 || !waits || !h.rule.Further(left, true):
		return h.rule.Others(left)
	case h.req.Entry.Op == message.Prefilling && !route.Asked(h.choice).Needed:
		return false
	}
	return route.Comes(h.choice, time.Now())
}

// mayMove reports whether the request may leave a worker for its silence: another one may take it, or it is a prefill,
// without which the worker that answers does.
func (h *History) mayMove() bool {
	return !h.moved && h.req.In.Tail == nil &&
		(h.req.Entry.Op == message.Prefilling || h.rule.Further(h.choice.Left(), !h.choice.Pinned()))
}

// note records what a failed attempt shows of its worker, and of the request.
func (h *History) note(f *Failure) {
	switch f.Reason {
	case journal.Late:
		h.late = true
	case journal.Moved, journal.Paused:
		h.moved = true
	case journal.NoAnswer:
		h.req.LostAt(f.By, f.sent, time.Now())
	case journal.Dying:
		h.req.LostAt(f.By, f.sent, time.Now().Add(admission.DyingFor))
	case journal.Down, journal.Connect, journal.ConnectLate:
		h.choice.Unreached(f.By)
		if f.late {
			h.choice.NotHad()
		}
	case journal.NoDescriptor:
		// connections are kept for 3.5 s, and may be more than requests are under way
		for _, p := range h.req.Epoch.Pools {
			p.Clients.CloseIdle()
		}
		h.req.Journal.NoDescriptor(h.req.In, h.req.Pool)
	}
}

// After keeps what the client gets for a failed attempt, and returns what follows it. consumed: part of the body is
// gone. left is how many of the order remain. pay takes a repeat from the budget.
func (h *History) After(f *Failure, consumed bool, left int, pay func() bool) route.Retry {
	if f.Reason != journal.Full || !h.rule.Begun() {
		h.Last = f.Fault
	}
	if f.Own != nil || f.Reason == journal.Key {
		h.Own = f.Own
	}
	h.Refused = f.Reason == journal.Denied
	next := h.rule.After(route.Failure{Grade: f.Grade, Broke: f.Reason == journal.NoAnswer || f.Reason == journal.Dying,
		Late: h.lateness(f), Paid: f.paid, By: f.By}, consumed, left, pay)
	if next == route.TryNext && left == 0 && f.Reason.Moves() && h.req.Entry.Op != message.Prefilling {
		return route.TryAgain // the worker that it was to move to cannot take it any more: it waits where it was
	}
	return next
}

// A request waits for a connection as long as engines may be busy with anything but their port. Where somebody else can
// do without, it waits until a packet that was lost has been sent again.
const (
	latePatience = 30 * time.Second
	lateElse     = 4 * time.Second
)

// lateness returns whether the request goes on to wait for a connection.
func (h *History) lateness(f *Failure) route.Lateness {
	now := time.Now()
	switch {
	case !f.late:
		return route.NotLate
	case h.since.IsZero():
		h.since = now
	case now.Sub(h.since) >= h.patience:
		return route.TooLate
	}
	return route.Late
}

// isRepeated reports whether a worker fails the request in a way in which another one has failed it, and excuses that
// one: the fault is the request's. A worker that is full, cannot be reached or says that it goes is one for itself, and
// two of them are two workers. The same process asked twice, perhaps at another of its ranks, excuses nobody.
func (h *History) isRepeated(by *worker.Worker, k judge.Kind) (again bool) {
	switch k {
	case judge.Failed, judge.Leaving, judge.Denied, judge.Broken:
	default:
		return false
	}
	for i := range h.suspects {
		if s := &h.suspects[i]; s.outcome.Kind == k && s.trip.Worker().Endpoint() != by.Endpoint() {
			s.trip.Excuse(k, time.Now())
			again = true
		}
	}
	return again
}

// settle decides whether the outcome of an attempt is held against its worker, before the attempt's trip ends.
func (h *History) settle(t *route.Trip, o *judge.Outcome) {
	switch {
	case o.Kind <= judge.Answered || o.Excused:
	case h.isRepeated(t.Worker(), o.Kind):
		o.Excused = true
	default:
		h.suspects = append(h.suspects, suspect{trip: t, outcome: *o})
	}
}

// accepted records that another worker has accepted the request: those that refused it are the ones at fault.
func (h *History) accepted() {
	for i := range h.suspects {
		h.suspects[i].trip.Confirm(h.suspects[i].outcome, time.Now())
	}
}
