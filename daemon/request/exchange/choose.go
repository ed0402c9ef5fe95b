package exchange

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/waiting"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// choose reads the request and decides where it goes. An answer that it returns refuses the request.
func (r *request) choose(ctx context.Context) *message.Outbound {
	in := r.in
	r.parse()
	if in.Tail != nil {
		if out := readOn(ctx, r); out != nil {
			return out
		}
	}
	in.Seen.Model = r.read.req.Model
	r.findReference()
	if f := r.forbidden(); f != nil {
		return r.refuse(*f)
	}
	if f := rename(r); f != nil {
		return r.refuse(*f)
	}
	pool, silent := r.choosePool()
	if pool != nil {
		r.pool, in.Seen.Pool = pool, pool.Name
	}
	in.Seen.Key, in.Seen.At = in.Caller.Name, r.arrived
	r.journal.Meter.Arrived(&in.Seen)
	if pool == nil {
		return r.refuse(message.FaultUnknownModel(r.clientModel()))
	}
	if f := r.hides(); f != nil {
		return r.refuse(*f)
	}
	if in.Tail == nil && r.read.req.Stream && r.generates() { // with a Tail the client may still write
		in.Comments.Begin()
	}
	if r.entry.Op != message.Prefilling {
		if f := letIn(ctx, r); f != nil {
			return r.turnDown(ctx, f)
		}
	}
	r.deaths = r.lethal.await(ctx, in, r.arrived)
	if r.deaths >= maxDeaths {
		r.log().Warn("request refused: two workers ended when they got it", "id", in.ID, "model", in.Seen.Model,
			"again_in", lethalFor)
		return r.refuse(message.FaultLethal)
	}
	ask := route.Ask{Prompt: r.read.req, Salt: r.entry.WithSalt(r.read.req.CacheSalt), Claim: r.claim(),
		ID: in.ID, Caller: in.Caller.Name, Fence: r.fence(), Leg: r.leg(), Named: in.Seen.PairName(),
		Shared: r.shares(), Headers: message.Offered{In: r.in},
		Deadline:      in.Deadline(r.arrived),
		EndWithWorker: r.epoch.Sessions.EndWithWorker, At: r.arrived,
		Turn:  r.pool.Arrive(r.read.req.Model, r.fence(), r.arrived),
		Class: classOf(r.read.req.Kind, in.Method, in.Path, r.read.req.Model),
		Rank:  message.AskedRank(message.ClientRank(in, r.pool))}
	ask.Claim.Silent = silent
	if pool.WantsPairs() {
		ask.Prefillers = prefillers(r)
	}
	if pool.Asking != nil && pool.WantsIDs() {
		r.lesson = findIDs(ctx, pool.Asking, in, &r.read, &ask)
	}
	if f := r.decide(ctx, &ask); f != nil {
		return r.turnDown(ctx, f)
	}
	if from, to := r.choice.Moved(); from != "" {
		r.log().Info("session moves to another worker", "id", in.ID, "from", from, "to", to,
			"session", session.Fingerprint(r.choice.Session()))
	}
	return nil
}

// hides returns why the body may name what its client may not have, or nil.
func (r *request) hides() *message.Fault {
	if r.pool.Pairing != nil && isWide(r.in.Body) {
		return &faultWide
	}
	return r.read.hidesResponse(r.in, r.target())
}

// choosePool returns the pool that the path names, that of the session, that of the worker that made the response, or
// that of the model. silent: the store did not answer for one of the pools whether it has the session.
func (r *request) choosePool() (p *epoch.Pool, silent bool) {
	if p := r.epoch.Named(r.entry.Pool); p != nil {
		return p, false
	}
	if r.entry.Session != "" {
		p, s := r.epoch.Holding(r.in.Opened(r.entry.Session), r.arrived)
		if p != nil {
			return p, false
		}
		silent = s == session.Silent
	}
	for i, id := range r.responses() {
		if id == "" || i == 0 && !r.in.Endpoint.Job && !r.in.Endpoint.Creates { // the body names a model too
			continue
		}
		p, s := r.epoch.Living(r.in.Stored(id), r.arrived)
		if p != nil {
			return p, false
		}
		silent = silent || s == session.Silent
	}
	if model := r.read.req.Model; model != "" || !r.in.Endpoint.Adapters {
		return r.epoch.For(model), silent
	}
	return r.epoch.For(readCall(r.in.Body).Name), silent // where requests for the adapter go
}

// firstCheck is how long a request waits for a worker's first health check. After a restart the router knows bindings
// at once and the workers a moment later, and a change may have replaced all workers.
const firstCheck = 2 * time.Second

// look has a worker chosen. It waits while a first health check is still to come, while the lists of models are read
// anew if none has the model, and in the pool's queue. A fault ends a wait there.
func (r *request) look(ctx context.Context, ask *route.Ask) (route.Verdict, *message.Fault) {
	ask.Patient, ask.Queue = true, queueing(r.pool.Queue, r.turn, r.arrived)
	v := r.pool.Choose(&r.choice, ask)
	if v == route.Unheard {
		v = r.await(ctx, ask)
	}
	if v == route.UnknownModel {
		v = renewLists(ctx, r, ask)
	}
	v = r.missing(v)
	if r.queues(v) && (v == route.Chosen || !r.fallsAtOnce(v)) {
		return r.wait(ctx, ask, v)
	}
	return v, nil
}

// decide gets a choice from the pool, and reserves what the request needs of its key's limits.
func (r *request) decide(ctx context.Context, ask *route.Ask) *message.Fault {
	v, dropped := r.look(ctx, ask)
	for dropped == nil && v == route.Chosen {
		over := r.limits.reserve(&r.read, r.in, r.pool, &r.choice)
		if over == nil {
			break
		}
		r.turn.leave()
		dropped = awaitLimit(ctx, r, over)
		if dropped == nil {
			ask.At = time.Now()
			v, dropped = r.look(ctx, ask)
		}
	}
	if dropped != nil {
		return r.drop(v, dropped)
	}
	r.noteChoice(v)
	if v == route.Chosen {
		v = r.choice.Bind()
		r.in.Seen.Session = r.choice.SessionKind()
		r.noteReason(ctx)
	}
	r.journal.Decided(r.in, &r.choice, v)
	if v == route.Fenced && r.entry.Op != message.Prefilling {
		r.journal.Fenced(r.in, r.pool)
	}
	if r.pool.Shadows != nil && r.chosen && ask.Named == "" { // else this was decided with the answer
		r.in.Seen.Others = r.pool.Shadows.Watch(&r.choice)
	}
	switch v {
	case route.Chosen:
		return nil
	case route.SessionLost:
		r.loseSession()
	}
	f := r.faultOf(v)
	return &f
}

// drop records a request that the queue has dropped after that verdict.
func (r *request) drop(v route.Verdict, f *message.Fault) *message.Fault {
	r.noteChoice(route.Full)
	r.journal.Decided(r.in, &r.choice, v)
	return f
}

// loseSession ends the session whose state died with its worker.
func (r *request) loseSession() {
	if b, ended := r.choice.LoseSession(); ended {
		r.log().Warn("session lost with its worker", "id", r.in.ID, "worker", b.Worker, "kind", b.Kind,
			"session", session.Fingerprint(r.choice.Session()))
	}
}

// await calls Choose again until a first health check must have come, or ctx ends.
func (r *request) await(ctx context.Context, ask *route.Ask) route.Verdict {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(firstCheck); ; {
		select {
		case ask.At = <-tick.C:
		case <-ctx.Done():
		}
		ask.Patient = ctx.Err() == nil && ask.At.Before(end)
		if v := r.pool.Choose(&r.choice, ask); v != route.Unheard {
			return v
		}
	}
}

// noteChoice records the decision and counts it. A verdict without a strategy gives the request's turn back.
func (r *request) noteChoice(v route.Verdict) {
	if v != route.Chosen && v != route.Rejected {
		r.pool.GiveBack(r.read.req.Model, r.fence())
		return
	}
	r.chosen = true
	seen := &r.in.Seen
	seen.Note(&r.choice)
	seen.At = time.Now()
	if r.epoch.Access {
		if logged, kept := r.epoch.Log.Wanted(); kept {
			seen.Explain(&r.choice)
			seen.Logged = logged
		}
	}
	r.journal.Meter.Picked(seen)
	if seen.Fallback != "" {
		r.journal.FailedStrategy(r.in, r.pool, &r.choice, v)
	}
}

// noteReason records why the first worker since Bind was chosen, if something reads it: the words cost allocations.
func (r *request) noteReason(ctx context.Context) {
	debug := r.journal.Log.Enabled(ctx, slog.LevelDebug)
	if !debug && !r.epoch.Access && r.in.Trace.Span == nil {
		return
	}
	seen := &r.in.Seen
	seen.Reason = r.choice.Reason()
	if debug {
		r.log().Debug("routed", "id", r.in.ID, "path", gate.Cut(r.in.Path), "worker", r.choice.First().ID(),
			"strategy", seen.Strategy, "reason", seen.Reason, "believed_prompt_tokens", seen.PromptTokens)
		if r.choice.Reported() { // in the words that scripts for other routers look for
			r.log().Debug("Routing request to "+r.choice.First().ID()+" found by "+seen.Strategy+" router", "id", r.in.ID)
		}
	}
}

// queues reports whether a request of that verdict waits, if its pool has a queue. One that could be sent waits too
// while others do: it would take the place that one of them waits for.
func (r *request) queues(v route.Verdict) bool {
	switch q := r.pool.Queue; {
	case q == nil:
		return false
	case v == route.Chosen:
		return q.ForRoom() > 0
	}
	return r.patient(v)
}

// patient reports whether a verdict is one that time may change.
func (r *request) patient(v route.Verdict) bool {
	return v == route.Full || v == route.Held || r.lacksWorkers(v) && r.pool.WaitEmpty
}

// lacksWorkers reports whether a verdict is one that another worker may change: none is up, or a pool whose workers
// come on demand has none for the caller's key.
func (r *request) lacksWorkers(v route.Verdict) bool {
	return v == route.NoWorker || v == route.Fenced && r.pool.Waker != nil
}

// known returns a verdict as the client gets it. A model that the pool names and no worker has is one whose workers are
// away, and not a client's mistake.
func (r *request) known(v route.Verdict) route.Verdict {
	if v == route.UnknownModel && r.pool.Patterns.Names(r.read.req.Model) {
		return route.NoWorker
	}
	return v
}

// missing is known, and has a worker asked for if there is none.
func (r *request) missing(v route.Verdict) route.Verdict {
	v = r.known(v)
	if r.lacksWorkers(v) && r.pool.Waker != nil {
		r.pool.Waker.Wake()
	}
	return v
}

// weighed returns what the queue has to know of the request.
func (r *request) weighed(ask *route.Ask, weight *route.Weight) *waiting.Wait {
	w := newWait(r.in, r.read.req, ask, weight)
	if class, share, ok := route.Classify(&r.choice); ok {
		rate(w, r.in, class, share)
	}
	return w
}

// charge has the key charged for the request's place at a worker, until the trip there ends.
func (r *request) charge(t *route.Trip, to route.Target, at time.Time) {
	switch q := r.pool.Queue; {
	case r.turn.waits():
		t.Charge = r.turn.served(at)
	case q != nil && q.Busy(at):
		ask, weight := route.Asked(&r.choice), route.WeighAt(&r.choice, to)
		t.Charge = q.Began(r.weighed(&ask, &weight), at)
	}
}

// enter takes a place in the pool's queue, or says why there is none.
func (r *request) enter(ask *route.Ask, v route.Verdict) *message.Fault {
	r.queue()
	weight := route.Weigh(&r.choice)
	w := r.weighed(ask, &weight)
	if r.computed { // the prefiller's memory is freed when a decoder has read it
		w.Class = math.MaxInt
	}
	w.Entered, w.Before = r.arrived, r.turn.before
	due := firstTokenBy(r.in, r.arrived)
	return r.turn.enter(r.pool.Queue, w, r.lacksWorkers(v), due, message.InSeconds(weight.Queued))
}

// wait has the request wait in its pool's queue and choose again whenever it has the turn, until the verdict is one
// that time does not change. With Chosen it keeps the turn: nobody else may take the place that it has found. A fault
// ends the wait.
func (r *request) wait(ctx context.Context, ask *route.Ask, v route.Verdict) (route.Verdict, *message.Fault) {
	f := r.enter(ask, v)
	if f != nil || v == route.Chosen && r.turn.wait.AtOnce() {
		return v, f
	}
	if v == route.Chosen && r.fallsAtOnce(route.Full) {
		return route.Full, nil
	}
	if v == route.Held && r.turn.wait.AtOnce() {
		r.turn.rest(&r.choice, v, false, ask.At)
	}
	ask.Patient = false
	r.journal.Waits(r.in, &r.choice, r.turn.wait)
	for {
		r.choice.Release()
		f := r.turn.await(ctx)
		ask.At = time.Now()
		ask.Queue = queueing(r.pool.Queue, r.turn, ask.At)
		found := r.missing(r.pool.Choose(&r.choice, ask)) // after a fault it is for the record alone
		switch {
		case f != nil:
			return v, f
		case !r.patient(found) || r.fallsAtOnce(found):
			return found, nil
		}
		v = found
		r.turn.rest(&r.choice, v, r.lacksWorkers(v), ask.At)
	}
}

// unqueued is why a request does not wait for another worker: that would not help it.
var unqueued message.Fault

// waitAgain has a request wait whose order has come to its end, if the workers that have not had it are full. It
// returns nil when the choice has a worker again, and else why it got none.
func (r *request) waitAgain(ctx context.Context) *message.Fault {
	if r.pool.Queue == nil {
		return &unqueued
	}
	now := time.Now()
	v := r.missing(route.Lacks(&r.choice, now))
	if v != route.Chosen && !r.patient(v) {
		return &unqueued
	}
	for {
		if r.turn.waits() {
			r.turn.wait.Blocked(r.lacksWorkers(v), now)
		} else {
			ask := route.Asked(&r.choice)
			if f := r.enter(&ask, v); f != nil {
				return f
			}
			r.journal.Waits(r.in, &r.choice, r.turn.wait)
		}
		if f := r.turn.await(ctx); f != nil {
			return f
		}
		now = time.Now()
		v = r.missing(route.Anew(&r.choice, now))
		switch {
		case v == route.Chosen:
			return nil
		case !r.patient(v):
			f := r.faultOf(v)
			return &f
		}
	}
}

// fence returns the labels of the workers that alone may get the request.
func (r *request) fence() worker.Fence {
	switch {
	case r.pool == nil:
		return r.in.Caller.Workers
	case r.entry.Op == message.Prefilling:
		return slices.Concat(worker.Fence(r.in.Caller.Workers), r.pool.Pairing.Prefillers)
	}
	return r.pool.Pairing.Answering(r.in.Caller.Workers)
}

// shares reports whether the prefillers of the pool answer too.
func (r *request) shares() bool { return r.pool.Pairing != nil && r.pool.Pairing.Shared }

// leg returns the part of the request that a worker is chosen for.
func (r *request) leg() route.Leg {
	switch {
	case r.pool == nil || r.pool.Pairing == nil:
		return route.Whole
	case r.entry.Op == message.Prefilling:
		return route.Prefill
	case hasPair(r):
		return route.Answer
	}
	return route.Whole
}
