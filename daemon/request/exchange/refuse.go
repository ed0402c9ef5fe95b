package exchange

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/attempt"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// refuse answers with an error of the router's own, and unbinds what the choice bound.
func (e *Exchange) refuse(f message.Fault) *message.Outbound { return e.refuseAs(f, nil) }

// refuseAs is refuse in the words and with the status of the last worker that refused the request; own is nil if there
// are none.
func (e *Exchange) refuseAs(f message.Fault, own *attempt.OwnError) *message.Outbound {
	seen := &e.req.In.Seen
	e.choice.Unbind()
	if e.fallsBack(failedFor(&f, own)) {
		return &fallen
	}
	seen.At = time.Now()
	f = f.Measured(e.req.Pool, seen.At)
	// A session that is bound waits for its own worker alone, and goes on elsewhere if that is down.
	f.Alone = f.Alone || e.choice.Binding().Worker != "" && f.Code != message.FaultNoWorker.Code
	var out *message.Outbound
	if own == nil {
		out = f.Outbound(e.req.Shape())
	} else {
		out = &own.Outbound
		seen.Worker = own.Worker
		out.ComeBackIn(f.Retry)
	}
	e.req.Journal.Meter.Refused(seen, f, out.Status, seen.At.Sub(e.req.Arrived))
	if strings.HasPrefix(f.Code, "session_") {
		e.req.Journal.RefusedSession(e.req.In, e.req.PoolName(), f.Code, "session",
			session.Fingerprint(e.choice.Session()))
	}
	seen.End = f.Code
	e.explain(out)
	e.req.TellModel(out)
	e.req.Limits.Tell(out, e.req.Shape())
	return out
}

// turnDown answers a request that gets no worker.
func (e *Exchange) turnDown(ctx context.Context, f *message.Fault) *message.Outbound {
	if f == &message.FaultGone {
		return e.abandon(ctx)
	}
	return e.refuse(*f)
}

// abandon ends a request whose client has left, or that outlived the drain. Its session has had no answer, so that it
// does not begin: a client that gave up on a worker that hangs must not find it again.
func (e *Exchange) abandon(ctx context.Context) *message.Outbound {
	if endedFor(ctx) == journal.Stopping {
		return e.refuse(message.FaultStopping)
	}
	e.choice.Unbind()
	if spent := e.req.In.Account.Spent(); e.req.Read.Req.Background { // the engine makes it all the same
		spent.UseAll()
	} else {
		spent.Left(time.Now())
	}
	e.req.In.Seen.End, e.req.In.Seen.At = "client_gone", time.Time{}
	e.req.Journal.Meter.Refused(&e.req.In.Seen, message.FaultGone, message.FaultGone.Status, time.Since(e.req.Arrived))
	return message.FaultGone.Outbound(e.req.Shape()) // nobody reads it
}

// endedFor returns why a request of that context, which has ended, is left without an answer.
func endedFor(ctx context.Context) journal.Reason {
	switch why := context.Cause(ctx); {
	case errors.Is(why, message.ErrClientGone):
		return journal.ClientGone
	case errors.Is(why, context.DeadlineExceeded): // of a leg
		return journal.Timeout
	}
	return journal.Stopping
}

// Release gives the pooled parts back. What was read of the body may not be used after it.
func (e *Exchange) Release() {
	e.req.Release()
	e.choice.Release()
}

// explain adds the decision to the answer's head if the client asked for it and the operator allows it to its key: in
// fields of its own ("1"), or the whole record as JSON ("json"). Workers are named by id, never by URL.
func (e *Exchange) explain(out *message.Outbound) {
	how := e.req.Explains(out)
	if how == "" {
		return
	}
	seen := &e.req.In.Seen
	if e.chosen && e.choice.Explain(&seen.Record) {
		seen.ID = e.req.In.ID
	}
	switch {
	case how == "json":
		explainInJSON(out, &seen.Record)
	case e.chosen:
		explainInFields(out, seen, e.req.PoolName())
	default: // refused before a strategy was asked
		explainRefusal(out, seen, e.req.PoolName())
	}
}

// faultOf returns the answer to a verdict that refuses. It changes nothing, as a preview calls it too.
func (e *Exchange) faultOf(v route.Verdict) message.Fault {
	switch v {
	case route.UnknownModel:
		return e.req.UnlistedModel()
	case route.Fenced:
		if e.req.WantsWeights() {
			return message.FaultWeights
		}
		if admission.NeedsWhole(&e.req) {
			return admission.FaultWhole(&e.req)
		}
		return message.FaultFenced
	case route.Full, route.Held:
		return e.req.FullFor(e.choice.Binding())
	case route.Rejected:
		if e.choice.FellBack() {
			return message.FaultUnchosen
		}
		return message.Rejection(e.choice.Rejection())
	case route.SessionSilent:
		return message.FaultSilent
	case route.SessionUnknown:
		return message.FaultSession(session.Unknown)
	case route.SessionExpired:
		return message.FaultSession(session.Expired)
	case route.SessionClosed:
		return message.FaultSession(session.Closed)
	case route.SessionLost:
		return message.FaultSession(session.Lost)
	case route.SessionResting:
		return message.FaultResting
	case route.SessionOtherModel:
		return message.FaultOtherModel
	case route.NoWorker:
		return e.req.AwayModel()
	}
	return message.FaultNoWorker
}

// fallen is in place of the answer to a request that goes to a fallback. No client gets it.
var fallen message.Outbound

// failedFor returns why the model has not served a request that ends with that fault, 0 if another model would not
// help. own is a worker's own error in its place.
func failedFor(f *message.Fault, own *attempt.OwnError) names.Reason {
	switch {
	case f.Cause == message.NoFreeWorker && (own != nil || f.Code == message.FaultNoPrefill.Code):
		// each worker says so itself, or each prefiller
		return names.Full
	case own != nil:
		return 0
	}
	switch f.Code {
	case message.FaultNoWorker.Code, message.FaultUpstream.Code, message.FaultDown.Code, message.FaultNoPrefill.Code,
		message.FaultUnknownModel("").Code: // no worker lists it any more
		return names.Down
	case message.FaultFull.Code, message.FaultQueueFull.Code, message.FaultWaited.Code, message.FaultOverdue.Code:
		return names.Full
	}
	return 0
}

// fallsBack reports whether the request goes to a fallback for that reason, and has it go there. What a worker keeps
// for its client is at that worker alone: a request for that goes nowhere else.
func (e *Exchange) fallsBack(why names.Reason) bool {
	if e.falls == 0 && e.req.MayFall(why, e.choice.Binding()) {
		e.falls = why
	}
	return e.falls != 0
}

// fallsAtOnce reports whether a request of that verdict, with which it would wait, goes to a fallback: one has room.
func (e *Exchange) fallsAtOnce(v route.Verdict) bool {
	why := names.Full
	if e.req.LacksWorkers(v) {
		why = names.Down
	}
	if v == route.Held || !e.req.MayFall(why, e.choice.Binding()) {
		return false
	}
	for a := e.req.Alias.After(why); a != nil; a = a.After(names.Full) {
		full := func(t names.Target) bool { return !e.req.Epoch.HasRoom(t.Model, e.req.OwnFence()) }
		if !slices.ContainsFunc(a.Targets, full) {
			return true
		}
	}
	return false
}
