package exchange

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/catalogue"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/waiting"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// choose reads the request and decides where it goes. An answer that it returns refuses the request.
func (e *Exchange) choose(ctx context.Context) *message.Outbound {
	in := e.req.In
	e.req.Parse()
	if in.Tail != nil {
		if f := admission.ReadOn(ctx, &e.req); f != nil {
			return e.turnDown(ctx, f)
		}
	}
	in.Seen.Model = e.req.Read.Req.Model
	e.req.FindReference()
	if f := e.req.Forbidden(); f != nil {
		return e.refuse(*f)
	}
	if f := admission.Rename(&e.req); f != nil {
		return e.refuse(*f)
	}
	pool, silent := e.req.ChoosePool()
	if pool != nil {
		e.req.Pool, in.Seen.Pool = pool, pool.Name
	}
	in.Seen.Key, in.Seen.At = in.Caller.Name, e.req.Arrived
	e.req.Journal.Meter.Arrived(&in.Seen)
	if pool == nil {
		return e.refuse(message.FaultUnknownModel(e.req.ClientModel()))
	}
	if f := e.req.Hides(); f != nil {
		return e.refuse(*f)
	}
	if f := e.req.ReadWeights(); f != nil {
		return e.refuse(*f)
	}
	if in.Tail == nil && e.req.Read.Req.Stream && e.req.Generates() { // with a Tail the client may still write
		in.Comments.Begin()
	}
	if !e.req.Own() && e.req.Rest == nil { // the others are in
		if f := admission.LetIn(ctx, &e.req); f != nil {
			return e.turnDown(ctx, f)
		}
	}
	e.deaths = e.req.Lethal.Await(ctx, in, e.req.Arrived)
	if e.deaths >= admission.MaxDeaths {
		e.req.Log().Warn("request refused: two workers ended when they got it", "id", in.ID, "model", in.Seen.Model,
			"again_in", admission.LethalFor)
		return e.refuse(message.FaultLethal)
	}
	ask := route.Ask{Prompt: e.req.Read.Req, Salt: e.req.Entry.WithSalt(e.req.Read.Req.CacheSalt), Claim: e.req.Claim(),
		ID: in.ID, Caller: in.Caller.Name, Fence: e.req.Fence(), Leg: e.req.Leg(), Named: in.Seen.PairName(),
		Shared: e.req.Shares(), Headers: message.Offered{In: e.req.In},
		Deadline:      in.Deadline(e.req.Arrived),
		EndWithWorker: e.req.Epoch.Sessions.EndWithWorker, At: e.req.Arrived, Away: e.req.Entry.Op == message.Moving,
		To: e.req.Entry.To, Held: e.req.Entry.Held,
		Turn:  e.req.Pool.Arrive(e.req.Read.Req.Model, e.req.Fence(), e.req.Arrived),
		Class: classOf(e.req.Read.Req.Kind, in.Method, in.Path, e.req.Read.Req.Model),
		Rank:  message.AskedRank(message.ClientRank(in, e.req.Pool))}
	ask.Claim.Silent = silent
	if e.req.Rest != nil {
		ask.From = e.req.Rest.From
	}
	if m := e.req.Entry.Mate; m != nil && m.Near != "" {
		ask.Near, ask.Far = m.Near, pool.Pairing.Far
	}
	ask.Needed = ask.Leg == route.Prefill && !pool.Pairing.Connector.Alone()
	if pool.WantsPairs() {
		ask.Prefillers = admission.Prefillers(&e.req)
	}
	if pool.Asking != nil && pool.WantsIDs() {
		e.lesson = findIDs(ctx, pool.Asking, in, &e.req.Read, &ask)
	}
	if f := e.decide(ctx, &ask); f != nil {
		return e.turnDown(ctx, f)
	}
	if from, to := e.choice.Moved(); from != "" {
		e.req.Journal.Moved(in, e.req.Pool, from, to, session.Fingerprint(e.choice.Session()))
	}
	return nil
}

// firstCheck is how long a request waits for a worker's first health check. After a restart the router knows bindings
// at once and the workers a moment later, and a change may have replaced all workers.
const firstCheck = 2 * time.Second

// look has a worker chosen. It waits while a first health check is still to come, while the lists of models are read
// anew if none has the model, and in the pool's queue. A fault ends a wait there.
func (e *Exchange) look(ctx context.Context, ask *route.Ask) (route.Verdict, *message.Fault) {
	ask.Patient, ask.Queue = true, admission.Queueing(e.req.Pool.Queue, e.req.Place, e.req.Arrived)
	v := e.req.Pool.Choose(&e.choice, ask)
	if v == route.Unheard {
		v = e.await(ctx, ask)
	}
	if v == route.UnknownModel {
		v = renewLists(ctx, e, ask)
	}
	v = e.req.Missing(v)
	if e.req.Queues(v) && (v == route.Chosen || !e.fallsAtOnce(v)) {
		return e.wait(ctx, ask, v)
	}
	return v, nil
}

// decide gets a choice from the pool, and reserves what the request needs of its key's limits.
func (e *Exchange) decide(ctx context.Context, ask *route.Ask) *message.Fault {
	v, dropped := e.look(ctx, ask)
	for dropped == nil && v == route.Chosen {
		over := e.req.Limits.Reserve(&e.req.Read, e.req.In, e.req.Pool, &e.choice)
		if over == nil {
			break
		}
		e.req.Place.Leave()
		dropped = admission.AwaitLimit(ctx, &e.req, over)
		if dropped == nil {
			ask.At = time.Now()
			v, dropped = e.look(ctx, ask)
		}
	}
	if dropped != nil {
		return e.drop(v, dropped)
	}
	e.noteChoice(v)
	if v == route.Chosen {
		v = e.choice.Bind()
		e.req.In.Seen.Session = e.choice.SessionKind()
		e.noteReason(ctx)
	}
	e.req.Journal.Decided(e.req.In, &e.choice, v)
	if v == route.Fenced && !e.req.Own() && !admission.NeedsWhole(&e.req) && !e.req.WantsWeights() {
		e.req.Journal.Fenced(e.req.In, e.req.Pool)
	}
	// Shadows decide nothing here where the strategy has named the prefiller with the answer, or a filter has refused the
	// request.
	if e.req.Pool.Shadows != nil && e.chosen && ask.Named == "" && e.choice.First() != nil {
		e.req.In.Seen.Others = e.req.Pool.Shadows.Watch(&e.choice)
	}
	switch v {
	case route.Chosen:
		return nil
	case route.SessionLost:
		e.loseSession()
	}
	f := e.faultOf(v)
	return &f
}

// drop records a request that the queue has dropped after that verdict.
func (e *Exchange) drop(v route.Verdict, f *message.Fault) *message.Fault {
	e.noteChoice(route.Full)
	e.req.Journal.Decided(e.req.In, &e.choice, v)
	return f
}

// loseSession ends the session whose state died with its worker.
func (e *Exchange) loseSession() {
	if b, ended := e.choice.LoseSession(); ended {
		e.req.Journal.SessionLost(e.req.In, e.req.Pool, b.Worker, b.Kind.String(), session.Fingerprint(e.choice.Session()))
	}
}

// await calls Choose again until a first health check must have come, or ctx ends.
func (e *Exchange) await(ctx context.Context, ask *route.Ask) route.Verdict {
	return poll(ctx, func(at time.Time, more bool) route.Verdict {
		ask.At, ask.Patient = at, more
		return e.req.Pool.Choose(&e.choice, ask)
	})
}

// poll calls choose every 10 ms until it returns something else than Unheard, which it may while more is true.
func poll(ctx context.Context, choose func(at time.Time, more bool) route.Verdict) route.Verdict {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for at, end := time.Now(), time.Now().Add(firstCheck); ; {
		select {
		case at = <-tick.C:
		case <-ctx.Done():
		}
		more := ctx.Err() == nil && at.Before(end)
		if v := choose(at, more); v != route.Unheard || !more {
			return v
		}
	}
}

// renewLists has the lists of all workers read anew, and chooses again as they come. Nobody listed the model.
func renewLists(ctx context.Context, e *Exchange, ask *route.Ask) (v route.Verdict) {
	workers := e.req.Pool.Workers
	workers.RenewLists(time.Now())
	ask.Patient = false
	catalogue.Await(ctx, workers.Renewing, func(at time.Time) bool {
		ask.At = at
		v = e.req.Pool.Choose(&e.choice, ask)
		return v != route.UnknownModel
	})
	return v
}

// noteChoice records the decision and counts it. A verdict without a strategy gives the request's turn back.
func (e *Exchange) noteChoice(v route.Verdict) {
	if v != route.Chosen && v != route.Rejected {
		e.req.Pool.GiveBack(e.req.Read.Req.Model, e.req.Fence())
		return
	}
	e.chosen = true
	seen := &e.req.In.Seen
	e.choice.Note(&seen.Record)
	seen.At = time.Now()
	if e.req.Epoch.Access {
		if logged, kept := e.req.Epoch.Log.Wanted(); kept {
			e.choice.Explain(&seen.Record)
			seen.Logged = logged
		}
	}
	e.req.Journal.Meter.Picked(seen)
	if seen.Fallback != "" {
		e.req.Journal.FailedStrategy(e.req.In, e.req.Pool, &e.choice, v)
	}
}

// noteReason records why the first worker since Bind was chosen, if something reads it: the words cost allocations.
func (e *Exchange) noteReason(ctx context.Context) {
	debug := e.req.Journal.Log.Enabled(ctx, slog.LevelDebug)
	e.req.Journal.Matched(e.req.In, &e.choice, debug)
	if !debug && !e.req.Epoch.Access && e.req.In.Trace.Span == nil {
		return
	}
	seen := &e.req.In.Seen
	seen.Reason = e.choice.Reason()
	if debug {
		e.req.Log().Debug("routed", "id", e.req.In.ID, "path", gate.Cut(e.req.In.Path), "worker", e.choice.First().ID(),
			"strategy", seen.Strategy, "reason", seen.Reason, "believed_prompt_tokens", seen.PromptTokens)
	}
}

// weighed returns what the queue has to know of the request.
func (e *Exchange) weighed(ask *route.Ask, weight *route.Weight) *waiting.Wait {
	w := admission.NewWait(e.req.In, e.req.Read.Req, ask, weight)
	if class, share, ok := route.Classify(&e.choice); ok {
		admission.Rate(w, e.req.In, class, share)
		if w.Cut != 0 {
			e.req.Journal.CutClass(e.req.In, e.req.Pool, w.Cut, w.Class)
		}
	}
	return w
}

// Charge has the key charged for the request's place at a worker, until the trip there ends.
func (e *Exchange) Charge(t *route.Trip, to route.Target, at time.Time) {
	switch q := e.req.Pool.Queue; {
	case e.req.Place.Waits():
		t.Charge = e.req.Place.Served(at)
	case q != nil && q.Busy(at):
		ask, weight := route.Asked(&e.choice), route.WeighAt(&e.choice, to)
		t.Charge = q.Began(e.weighed(&ask, &weight), at)
	}
}

// enter takes a place in the pool's queue, or says why there is none.
func (e *Exchange) enter(ask *route.Ask, v route.Verdict) *message.Fault {
	e.req.Queue()
	weight := route.Weigh(&e.choice)
	w := e.weighed(ask, &weight)
	if e.computed { // the prefiller's memory is freed when a decoder has read it
		w.Class = math.MaxInt
	}
	w.Entered, w.Before = e.req.Arrived, e.req.Place.Before
	var due time.Time
	if e.req.Rest == nil { // else the first token has come
		due = admission.FirstTokenBy(e.req.In, e.req.Arrived)
	}
	w.Stale = v == route.Fenced && e.req.WantsWeights()
	return e.req.Place.Enter(e.req.Pool.Queue, w, e.req.LacksWorkers(v), due, message.InSeconds(weight.Queued))
}

// wait has the request wait in its pool's queue and choose again whenever it has the turn, until the verdict is one
// that time does not change. With Chosen it keeps the turn: nobody else may take the place that it has found. A fault
// ends the wait.
func (e *Exchange) wait(ctx context.Context, ask *route.Ask, v route.Verdict) (route.Verdict, *message.Fault) {
	f := e.enter(ask, v)
	if f != nil || v == route.Chosen && e.req.Place.Wait.AtOnce() {
		return v, f
	}
	if v == route.Chosen && e.fallsAtOnce(route.Full) {
		return route.Full, nil
	}
	if v == route.Held && e.req.Place.Wait.AtOnce() {
		e.req.Place.Rest(&e.choice, v, false, ask.At)
	}
	ask.Patient = false
	e.req.Journal.Waits(e.req.In, &e.choice, e.req.Place.Wait)
	for {
		e.choice.Release()
		f := e.req.Place.Await(ctx)
		ask.At = time.Now()
		ask.Queue = admission.Queueing(e.req.Pool.Queue, e.req.Place, ask.At)
		found := e.req.Missing(e.req.Pool.Choose(&e.choice, ask)) // after a fault it is for the record alone
		switch {
		case f != nil && v == route.Fenced && f.Code == message.FaultWaited.Code:
			return v, new(e.faultOf(v))
		case f != nil:
			return v, f
		case !e.req.Patient(found) || e.fallsAtOnce(found):
			return found, nil
		}
		v = found
		e.req.Place.Rest(&e.choice, v, e.req.LacksWorkers(v), ask.At)
	}
}

// unqueued is why a request does not wait for another worker: that would not help it.
var unqueued message.Fault

// waitAgain has a request wait whose order has come to its end, if the workers that have not had it are full, or have
// just taken the places of those in the order. It returns nil when the choice has a worker again, and else why it got
// none.
func (e *Exchange) waitAgain(ctx context.Context) *message.Fault {
	now := time.Now()
	v := route.Lacks(&e.choice, now)
	if v == route.Unheard {
		v = poll(ctx, func(at time.Time, _ bool) route.Verdict {
			now = at
			return route.Anew(&e.choice, at)
		})
		if v == route.Chosen {
			return nil
		}
	}
	if e.req.Pool.Queue == nil || e.sending.history.Refused && e.req.LacksWorkers(e.req.Known(v)) {
		return &unqueued // a worker has answered, and the others are down: they may refuse the request too
	}
	v = e.req.Missing(v)
	if v != route.Chosen && !e.req.Patient(v) {
		return &unqueued
	}
	for {
		if e.req.Place.Waits() {
			e.req.Place.Wait.Blocked(e.req.LacksWorkers(v), now)
		} else {
			ask := route.Asked(&e.choice)
			if f := e.enter(&ask, v); f != nil {
				return f
			}
			e.req.Journal.Waits(e.req.In, &e.choice, e.req.Place.Wait)
		}
		if f := e.req.Place.Await(ctx); f != nil {
			return f
		}
		now = time.Now()
		v = e.req.Missing(route.Anew(&e.choice, now))
		switch {
		case v == route.Chosen:
			return nil
		case !e.req.Patient(v):
			f := e.faultOf(v)
			return &f
		}
	}
}
