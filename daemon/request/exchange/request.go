package exchange

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/overflow"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/tokens"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// request is what is known of a request between its arrival and the end of its answer. One goroutine at a time uses it:
// the handler's until the response head, then the one that reads the answer.
type request struct {
	journal *journal.Journal
	lethal  *lethal // nil in a preview
	in      *message.Inbound
	id      string // that the worker gets
	epoch   *epoch.Epoch
	kept    *kept        // nil in a preview
	alias   *names.Alias // that the client named; nil = its model's own name
	entry   message.Entry
	arrived time.Time

	pool     *epoch.Pool
	limits   allowance // of the caller's key
	read     reading
	choice   route.Choice
	turn     *turn          // in the pool's queue; nil = it was in none
	deaths   int8           // workers that have ended with this request before
	chosen   bool           // the strategy has been asked
	computed bool           // a prefiller keeps the KV of the prompt, and no decoder had a place for the request
	mistaken bool           // a worker gave the answer to another request
	unasked  bool           // a worker refuses to be asked for the usage of a stream
	fell     names.Reason   // why another model has not served the request before; 0 = none had it
	falls    names.Reason   // why it goes to another model now; 0 = it does not
	lesson   *tokens.Lesson // that the answer is to teach; nil = none
	rare     *rare          // what few requests have; nil = this one has none of it
}

// kept is what a Server keeps for its requests.
type kept struct {
	overflow overflow.Store // bodies until they can be routed
	models   names.Book     // of sessions under aliases
	jobs     underway       // of keys with limits
	lists    catalogues     // of models
}

// parse reads the body. What opens or closes a session has no prompt.
func (r *request) parse() {
	r.read.parse(r.in, r.entry.Model)
	if r.entry.Op == message.Opening || r.entry.Op == message.Closing {
		r.read.computes, r.read.salted = false, false
	}
}

// rare has what few requests have.
type rare struct {
	reference string // the file or job that the body of a new one names; "" = none
	cookie    string // the one to set, if the answer is a success
}

var noneRare rare

// seldom returns what the request has of it, to be read.
func (r *request) seldom() *rare {
	if r.rare == nil {
		return &noneRare
	}
	return r.rare
}

// log returns the logger that names the request's pool.
func (r *request) log() *slog.Logger { return r.journal.Of(r.pool) }

// shape returns the shape of the endpoint's errors.
func (r *request) shape() message.Shape { return r.in.Endpoint.Shape }

// poolName returns the name of the pool, or "" if none has been chosen.
func (r *request) poolName() string {
	if r.pool == nil {
		return ""
	}
	return r.pool.Name
}

// refuse answers with an error of the router's own, and unbinds what the choice bound.
func (r *request) refuse(f message.Fault) *message.Outbound { return r.refuseAs(f, nil) }

// refuseAs is refuse in the words and with the status of the last worker that refused the request; own is nil if there
// are none.
func (r *request) refuseAs(f message.Fault, own *ownError) *message.Outbound {
	seen := &r.in.Seen
	r.choice.Unbind()
	if r.fallsBack(failedFor(&f, own)) {
		return &fallen
	}
	seen.At = time.Now()
	f = f.Measured(r.pool, seen.At)
	var out *message.Outbound
	if own == nil {
		out = f.Outbound(r.shape())
	} else {
		out = &own.Outbound
		seen.Worker = own.worker
		out.ComeBackIn(f.Retry)
	}
	r.journal.Meter.Refused(seen, f, out.Status, seen.At.Sub(r.arrived))
	if strings.HasPrefix(f.Code, "session_") {
		r.journal.RefusedSession(r.in, r.poolName(), f.Code, "session", session.Fingerprint(r.choice.Session()))
	}
	seen.End = f.Code
	r.explain(out)
	r.tellModel(out)
	r.limits.tell(out, r.shape())
	return out
}

// turnDown answers a request that gets no worker.
func (r *request) turnDown(ctx context.Context, f *message.Fault) *message.Outbound {
	if f == &message.FaultGone {
		return r.abandon(ctx)
	}
	return r.refuse(*f)
}

// queue returns the request's place in its pool's queue, which it has not entered yet.
func (r *request) queue() *turn {
	if r.turn == nil {
		r.turn = &turn{meter: r.journal.Meter, in: r.in, leg: r.entry.Op == message.Prefilling}
	}
	return r.turn
}

// abandon ends a request whose client has left, or that outlived the drain. Its session has had no answer, so that it
// does not begin: a client that gave up on a worker that hangs must not find it again.
func (r *request) abandon(ctx context.Context) *message.Outbound {
	if endedFor(ctx) == journal.Stopping {
		return r.refuse(message.FaultStopping)
	}
	r.choice.Unbind()
	if spent := r.in.Account.Spent(); r.read.req.Background { // the engine makes it all the same
		spent.UseAll()
	} else {
		spent.Left(time.Now())
	}
	r.in.Seen.End, r.in.Seen.At = "client_gone", time.Time{}
	r.journal.Meter.Refused(&r.in.Seen, message.FaultGone, message.FaultGone.Status, time.Since(r.arrived))
	return message.FaultGone.Outbound(r.shape()) // nobody reads it
}

// endedFor returns why a request of that context, which has ended, is left without an answer.
func endedFor(ctx context.Context) journal.Reason {
	if errors.Is(context.Cause(ctx), message.ErrClientGone) {
		return journal.ClientGone
	}
	return journal.Stopping
}

// consumed reports whether a failed attempt may have used up part of the body.
func (r *request) consumed() bool { return r.in.Tail != nil && r.in.Tail.Passed() }

// release gives the pooled parts back. What was read of the body may not be used after it.
func (r *request) release() {
	r.turn.leave()
	r.read.release()
	r.choice.Release()
}

// target returns the request's path at the worker, without the query.
func (r *request) target() string {
	if r.entry.Door != nil {
		return r.entry.Door.Target(r.pool)
	}
	return r.in.Path
}

// generates reports whether the answer is generated text.
func (r *request) generates() bool { return r.read.req.Kind.Generates() }

// understood reports whether the router reads answers of the request's kind.
func (r *request) understood() bool { return r.read.req.Kind != prompt.Other }

// explain adds the decision to the answer's head if the client asked for it and the operator allows it to its key: in
// fields of its own ("1"), or the whole record as JSON ("json"). Workers are named by id, never by URL.
func (r *request) explain(out *message.Outbound) {
	how := r.in.Get("X-Warmpath-Explain")
	if how != "1" && how != "json" || !r.epoch.Explain || !r.in.Caller.Explain {
		return
	}
	seen := &r.in.Seen
	if r.chosen && seen.Explain(&r.choice) {
		seen.ID = r.in.ID
	}
	switch {
	case how == "json":
		explainInJSON(out, &seen.Record)
	case r.chosen:
		explainInFields(out, seen, r.poolName())
	default: // refused before a strategy was asked
		explainRefusal(out, seen, r.poolName())
	}
}

// payRetry takes a repeat from the pool's budget.
func (r *request) payRetry() bool {
	if r.pool.Workers.MayRetry(time.Now()) {
		return true
	}
	r.journal.Meter.Shed(r.pool.Name, "retry_budget")
	return false
}

// lostAt records that a worker lost the connection of the request before the end of its answer, or that its engine is
// dead. Health checks after since show whether its process lives on.
func (r *request) lostAt(w *worker.Worker, since time.Time) {
	if r.in.Method == http.MethodPost {
		r.lethal.lose(r.in, r.pool.Workers, w.Key(), since)
	}
}

// endsStreams reports whether the door itself ends a stream that broke off.
func (r *request) endsStreams() bool { return r.entry.Door != nil && r.entry.Door.EndsStreams() }

// fullFor returns the answer to a request whose session lives at b: the others may have room.
func (r *request) fullFor(b session.Binding) message.Fault {
	f := message.FaultFull
	switch {
	case b.Worker != "":
		f.Message = "the session's worker has as much to do as it may have; try again shortly"
	case len(r.in.Caller.Workers) > 0:
		f.Message = "every worker that this API key may use (keys.workers) has as much to do as it may have; try again" +
			" shortly"
	}
	return f
}

// faultOf returns the answer to a verdict that refuses. It changes nothing, as a preview calls it too.
func (r *request) faultOf(v route.Verdict) message.Fault {
	switch v {
	case route.UnknownModel:
		return r.unlistedModel()
	case route.Fenced:
		return message.FaultFenced
	case route.Full, route.Held:
		return r.fullFor(r.choice.Binding())
	case route.Rejected:
		if r.choice.FellBack() {
			return message.FaultUnchosen
		}
		return message.Rejection(r.choice.Rejection())
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
		return r.awayModel()
	}
	return message.FaultNoWorker
}

// maxNamed bounds how many models an error names.
const maxNamed = 8

// unlistedModel returns the fault for a model that the pool serves and none of its workers lists. Most likely one of
// the two names is misspelt, so the fault names the models listed, if explain is on, to callers who may use any model.
func (r *request) unlistedModel() message.Fault {
	f := message.FaultUnknownModel(r.clientModel())
	f.Message += r.theyList()
	return f
}

// awayModel returns the fault for a model that no worker has which is up. Those of the pool may list others.
func (r *request) awayModel() message.Fault {
	f := message.FaultNoWorker
	if len(r.in.Caller.Workers) > 0 {
		f.Message = "no worker that this API key may use (keys.workers) is up for this request; try again shortly"
		return f
	}
	if others := r.theyList(); others != "" && r.pool.Patterns.Names(r.read.req.Model) {
		f.Message = "no worker that is up lists the model " + strconv.Quote(gate.Cut(r.clientModel())) +
			"; try again shortly" + others
	}
	return f
}

// theyList returns words for the models that the pool's workers list, "" if they list none, or the client may not know.
func (r *request) theyList() string {
	if !r.epoch.Explain || r.alias != nil || !r.in.Caller.Allows("") || len(r.in.Caller.Workers) > 0 {
		return ""
	}
	var names []string
	for _, m := range r.pool.Listed(r.arrived, maxNamed, r.epoch.Names.Hides) {
		names = append(names, strconv.Quote(gate.Cut(m)))
	}
	if len(names) == 0 {
		return ""
	}
	return "; those of its pool list " + strings.Join(names, ", ")
}

// HeaderModel has the model that an alias stood for.
const HeaderModel = "X-Warmpath-Model"

// clientModel returns the model by the name that the client has for it.
func (r *request) clientModel() string {
	if r.alias != nil {
		return r.alias.Name
	}
	return r.read.req.Model
}

// tellModel says in the answer's head which model an alias stood for, and why it is a fallback.
func (r *request) tellModel(out *message.Outbound) {
	if r.alias != nil && r.in.Seen.Model != "" { // what is read of a stored response names none
		out.Set(HeaderModel, r.in.Seen.Model)
	}
	if r.fell != 0 {
		out.Set(HeaderFallback, r.fell.String())
	}
}

// hideTarget writes the alias into a worker's error of a whole answer.
func (r *request) hideTarget(status int, text []byte) []byte {
	if r.alias == nil || status < 400 {
		return text
	}
	return names.Hide(text, r.in.Seen.Model, r.alias.Name)
}

// clientHeader returns the fields of the worker's answer that the client gets, with the alias in them.
func (r *request) clientHeader(h upstream.Header) []upstream.Field {
	out := message.ClientHeader(h)
	if r.alias != nil {
		for i := range out {
			out[i].Value = names.Hide(out[i].Value, r.in.Seen.Model, r.alias.Name)
		}
	}
	return out
}

// A request whose model cannot serve it may go to the fallback of the name that the client sent. It is then chosen and
// sent anew, by an Exchange of its own. That is decided before its refusal is counted, and before the client has a
// byte.

// HeaderFallback says why another model than the first has answered: down, full or context.
const HeaderFallback = "X-Warmpath-Fallback"

// fallen is in place of the answer to a request that goes to a fallback. No client gets it.
var fallen message.Outbound

// failedFor returns why the model has not served a request that ends with that fault, 0 if another model would not
// help. own is a worker's own error in its place.
func failedFor(f *message.Fault, own *ownError) names.Reason {
	switch {
	case own != nil && f.Cause == message.NoFreeWorker: // each worker says so itself
		return names.Full
	case own != nil:
		return 0
	}
	switch f.Code {
	case message.FaultNoWorker.Code, message.FaultUpstream.Code, message.FaultDown.Code,
		message.FaultUnknownModel("").Code: // no worker lists it any more
		return names.Down
	case message.FaultFull.Code, message.FaultQueueFull.Code, message.FaultWaited.Code, message.FaultOverdue.Code:
		return names.Full
	}
	return 0
}

// fallsBack reports whether the request goes to a fallback for that reason, and has it go there. What a worker keeps
// for its client is at that worker alone: a request for that goes nowhere else.
func (r *request) fallsBack(why names.Reason) bool {
	if r.falls == 0 && r.mayFall(why) {
		r.falls = why
	}
	return r.falls != 0
}

// mayFall reports whether the request may go to a fallback for that reason.
func (r *request) mayFall(why names.Reason) bool {
	if r.alias.After(why) == nil || r.entry.Door != nil || r.entry.Op != message.Use || r.entry.Session != "" ||
		r.consumed() || r.in.Endpoint.Adapters || r.in.Endpoint.ID != "" || r.seldom().reference != "" ||
		r.read.req.PreviousResponse != "" {
		return false
	}
	b := r.choice.Binding()
	return b.Worker == "" || b.Kind == session.Key && why != names.Full // else it waits for its own worker alone
}

// fallsAtOnce reports whether a request of that verdict, with which it would wait, goes to a fallback: one has room.
func (r *request) fallsAtOnce(v route.Verdict) bool {
	why := names.Full
	if r.lacksWorkers(v) {
		why = names.Down
	}
	if v == route.Held || !r.mayFall(why) {
		return false
	}
	for a := r.alias.After(why); a != nil; a = a.After(names.Full) {
		full := func(t names.Target) bool { return !r.epoch.HasRoom(t.Model, r.in.Caller.Workers) }
		if !slices.ContainsFunc(a.Targets, full) {
			return true
		}
	}
	return false
}
