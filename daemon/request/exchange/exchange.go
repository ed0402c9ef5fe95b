package exchange

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/attempt"
	"github.com/warmpath/warmpath/daemon/request/catalogue"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/handoff"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/tokens"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Exchange is one request, from its choice of a worker to the last byte of its answer. It is one allocation with all
// that its first attempt needs: nearly always the only one.
type Exchange struct {
	req      admission.Request
	choice   route.Choice
	lesson   *tokens.Lesson // that the answer is to teach; nil = none
	chosen   bool           // the strategy has been asked
	once     bool           // no worker gets it twice: another one waits for the first try
	computed bool           // a prefiller keeps the KV of the prompt, and no decoder had a place for the request
	deaths   int8           // workers that have ended with this request before
	falls    names.Reason   // why it goes to another model now; 0 = it does not
	tries    uint16         // attempts

	sending *sending                        // nil but for the time of Send
	under   atomic.Pointer[attempt.Attempt] // at a worker, the last one
	by      *worker.Worker                  // the worker that answered

	first attempt.Attempt
}

// exchanges keeps those that are forgotten: 1.8 KB that a request would allocate.
var exchanges = sync.Pool{New: func() any { return new(Exchange) }}

// forgotten reports whether nobody else can use the exchange any more: nothing calls its only attempt late.
func (e *Exchange) forgotten() bool {
	return e.tries == 1 && e.by != nil && e.lesson == nil && e.first.Silent()
}

// Reuse gives the exchange to another request, if nobody else can use it.
func (e *Exchange) Reuse() {
	if e.forgotten() {
		*e = Exchange{}
		exchanges.Put(e)
	}
}

// Serve chooses a worker and sends the request to it.
func (e *Exchange) Serve(ctx context.Context) *message.Outbound {
	if out := e.Choose(ctx); out != nil {
		return out
	}
	if e.req.In.Endpoint.Adapters {
		if to := callees(e); to != nil {
			return callAll(ctx, e, to)
		}
	}
	return e.Send(ctx)
}

// Choose decides where the request goes. An answer that it returns refuses the request; no other method may be called
// then.
func (e *Exchange) Choose(ctx context.Context) *message.Outbound {
	returned := false
	defer func() {
		if !returned { // a panic: nobody else would get a turn
			e.req.Place.Leave()
		}
	}()
	out := e.choose(ctx)
	returned = true
	if out != nil {
		e.Release()
	}
	return out
}

// Parts returns the request and its choice.
func (e *Exchange) Parts() (*admission.Request, *route.Choice) { return &e.req, &e.choice }

// SendOnce has Send repeat nothing that a worker may have begun.
func (e *Exchange) SendOnce() { e.once = true }

// Under returns the last attempt at a worker, nil if there is none.
func (e *Exchange) Under() *attempt.Attempt { return e.under.Load() }

// Pool returns the pool that the request goes to.
func (e *Exchange) Pool() *epoch.Pool { return e.req.Pool }

// Chosen returns the worker that comes first in the choice.
func (e *Exchange) Chosen() *worker.Worker { return e.choice.First() }

// By returns the worker that answered, nil if none did.
func (e *Exchange) By() *worker.Worker { return e.by }

// Binding returns where the request's session lived when it came.
func (e *Exchange) Binding() session.Binding { return e.choice.Binding() }

// Keep ends an exchange that the router answers itself, in place of Send.
func (e *Exchange) Keep() {
	e.req.In.Seen.Worker = e.Chosen().ID()
	e.req.Pool.Workers.Place(e.Chosen(), time.Now())
	e.req.In.Account.Sent()
	e.req.Journal.Meter.Placed(&e.req.In.Seen, time.Since(e.req.Arrived))
	e.Release()
}

// Send tries the workers in the order of the choice until one gives an answer that can go to the client. Until then the
// client has seen nothing.
func (e *Exchange) Send(ctx context.Context) *message.Outbound {
	r := sendings.Get().(*sending)
	e.sending = r
	defer func() {
		e.req.Place.Leave()
		r.pairing.Free()
		e.sending = nil
		r.end()
	}()
	e.prepare(r)
	r.history.Begin(&e.req, &e.choice, e.lesson, e.deaths)
	var failed journal.Step
	for {
		r.At = time.Now()
		to, ok := e.choice.Next(r.At)
		if !ok {
			f := e.waitAgain(ctx)
			switch {
			case f == nil:
				continue
			case f == &message.FaultGone:
				return e.releasing(e.abandon(ctx))
			case f != &unqueued && route.Trips(&e.choice) == 0: // else the worker's failure is the answer
				r.history.Last, r.history.Own = *f, nil
			}
			e.noteEnd(failed, e.req.Journal.NobodyLeft)
			break
		}
		e.req.Journal.PassedOn(e.req.In, e.req.Pool, failed, to.Worker)
		failed = journal.Step{}
		out, why := e.sendTo(ctx, to)
		if why == nil {
			return out
		}
		if ctx.Err() != nil {
			if why.Reason != journal.Full {
				e.req.Journal.Unanswered(e.req.In, journal.Step{Reason: endedFor(ctx), Worker: to.Worker,
					After: time.Since(e.req.Arrived)})
			}
			return e.releasing(e.abandon(ctx))
		}
		if why == &unready {
			r.history.Last = why.Fault
			break
		}
		if why.Reason != journal.Full { // that is no failure
			failed = journal.Step{Reason: why.Reason, Worker: to.Worker, After: time.Since(e.req.Arrived)}
		}
		next := r.history.After(why, e.req.Consumed(), e.choice.Left(), e.req.PayRetry)
		if next == route.GiveUp || next == route.TryAgain && e.once && why.Grade == route.GradeSilent {
			e.noteEnd(failed, e.req.Journal.GaveUp)
			break
		}
		if next == route.TryAgain || why.AsksAgain() {
			r.pairing.Stop(why)
			if why.Reason.Moves() {
				e.choice.Back()
			} else {
				e.choice.Again(time.Now())
			}
		}
	}
	return e.releasing(e.refuseAs(r.history.Last, r.history.Own))
}

// prepare makes what a worker gets.
func (e *Exchange) prepare(r *sending) {
	r.Request = upstream.Request{Method: e.req.In.Method, Path: e.req.Target(),
		Header: message.WorkerHeader(r.Header, e.req.In, e.req.ID, e.req.Pool, e.req.Entry.Door),
		Mark:   epoch.MarkOf(e.req.ID), Upgrade: e.req.In.Socket}
	// A prefiller that ends the prompt just when the leg is ended keeps the KV, and its answer says where.
	r.Lingers = e.req.Entry.Op == message.Prefilling && e.req.Pool.Pairing.Connector.Pins()
	e.makeBody(r)
	r.pairing = handoff.Of(&e.req, &e.choice, &r.history, &r.Request, func() handoff.Exchange { return new(Exchange) })
	if e.req.Entry.Door != nil {
		r.Header = e.req.Entry.Door.Header(r.Header, e.req.Pool, e.choice.Binding())
	}
	if e.req.In.Query != "" {
		r.Path += "?" + e.req.In.Query
	}
}

// makeBody makes the body that a worker gets.
func (e *Exchange) makeBody(r *sending) {
	r.Body, r.behind, r.Tail, r.TailLength = e.req.In.Body, nil, e.req.In.Tail, e.req.In.Left
	r.edit(&e.req)
	if e.req.In.Tail == nil && e.req.In.Kept == nil && e.req.Pool.WantsIDs() {
		r.Body = tokens.Unreported(r.Body)
	}
	if e.lesson != nil {
		r.Body = tokens.WithIDs(r.Body)
	}
	if admission.GuardsWhole(&e.req) { // a client may not tell a worker of another one
		r.Body = pair.Alone(r.Body)
	}
	r.keepAlone(&e.req)
}

// unask makes the request anew for a worker that refuses to be asked for the usage. It stays so, wherever it goes then.
func (e *Exchange) unask() {
	s := e.sending
	s.unasked = true
	e.makeBody(s)
	s.pairing.Rewrite(s.Body)
}

// releasing gives the exchange's memory back, and returns its answer, which is no stream.
func (e *Exchange) releasing(out *message.Outbound) *message.Outbound {
	e.Release()
	return out
}

// sendTo sends the request to one worker. If it fails, it has ended the trip.
func (e *Exchange) sendTo(ctx context.Context, to route.Target) (*message.Outbound, *attempt.Failure) {
	client := e.req.Pool.Clients.Get(to.Worker.URL())
	if client == nil { // removed since the choice
		return nil, &attempt.Failure{Reason: journal.Removed, Fault: message.FaultUpstream, Grade: route.GradeUnseen}
	}
	release, why := loadAdapter(ctx, e, e.sending, to.Worker)
	if why != nil {
		return nil, why
	}
	defer release()
	a := &e.first
	if e.tries > 0 {
		a = new(attempt.Attempt) // a late callback may still look at the first
	}
	e.tries++
	if e.req.Read.Asks && e.req.Pool.Clients.Mutes(to.Worker.URL()) {
		e.unask()
	}
	p := e.sending.pairing
	p.Reset()
	to.Handed = p.Splits(to)
	to.Coming = to.Handed && !p.Computed() // else a prefiller has computed it for an earlier decoder
	if !a.Begin(ctx, &e.sending.history, to, e.sending.At, to.Handed && p.Beside()) {
		f := message.FaultNoWorker // the worker rests after failures, and its trial is another request
		if e.req.Pool.Limited {
			f = message.FaultFull
		}
		return nil, &attempt.Failure{Reason: journal.Full, Fault: f, Grade: route.GradeUnseen}
	}
	e.sending.Header = message.PinRank(e.sending.Header, cmp.Or(message.ClientRank(e.req.In, e.req.Pool),
		to.Worker.RankHeader()))
	e.under.Store(a)
	returned := false
	defer func() {
		if !returned { // a panic: the worker's count comes down, and the front answers
			a.Abandon()
		}
	}()
	e.Charge(&a.Trip, to, e.sending.At)
	if m := e.req.Entry.Mate; m != nil && m.Ahead != nil && !m.Ahead(ctx) {
		returned = true
		a.Abandon()
		return nil, &unready
	}
	if to.Handed {
		f := p.Prefill(ctx, a, to)
		defer p.End()
		if f != nil {
			returned = true
			a.Abandon()
			return nil, f
		}
	}
	e.sending.rewind(e.req.In)
	out, f := a.Send(ctx, &e.sending.history, client, e.sending.hinted(&e.req, a.Trip.Hint()))
	if f == nil {
		e.complete(ctx, a, out)
	}
	returned = true
	p.Ended(out, f, f != nil && f.Headless && ctx.Err() != nil)
	if f == nil {
		return out, nil
	}
	if f.Reason == journal.Full { // others took the last places while the prompt was computed
		e.computed = p.Computed()
	}
	e.falls = cmp.Or(e.falls, f.Falls)
	return nil, f
}

// unready is why nothing is sent: what [message.Mate] has ahead of that has failed.
var unready = attempt.Failure{Reason: journal.Full, Fault: message.FaultNoPrefill, Grade: route.GradeUnseen}

// complete fills in the head of an answer that goes to the client, and ends the exchange if it came whole.
func (e *Exchange) complete(ctx context.Context, a *attempt.Attempt, out *message.Outbound) {
	w, against := a.Trip.Worker(), a.Against()
	if e.req.In.Endpoint.Adapters && out.Status < 300 {
		changed(&e.req)
		catalogue.Renew(ctx, e.req.Pool.Workers, w)
	}
	e.explain(out)
	e.req.TellModel(out)
	e.req.Limits.Tell(out, e.req.Shape())
	if v := a.TellWeights(); v != "" {
		out.Set(message.HeaderWeights, v)
	}
	e.by = w
	if e.choice.Answered(w, out.Status < 400 && against != judge.Denied) && e.req.Cookie != "" {
		c := http.Cookie{Name: e.req.Epoch.Sessions.Cookie, Value: e.req.Cookie, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteLaxMode, Secure: e.req.In.TLS}
		out.Set("Set-Cookie", c.String())
	}
	if out.Status < 300 {
		e.keep(w)
	}
	if out.Stream == nil {
		a.Finish()
	} else {
		if e.req.In.Method == http.MethodPost && e.req.Rest == nil {
			e.req.Lethal.Note(e.req.In)
		}
		if e.req.Pool.Continue > 0 {
			e.mayContinue(ctx, a, out)
		}
		e.req.Read.Req.Trim()
	}
	e.choice.Release() // a stream may last for minutes, and rows of 256 workers are 32 KB
}

// noteEnd logs the end of the attempts, as end does for a client that gets an error. Of a prefill no client does.
func (e *Exchange) noteEnd(last journal.Step, end func(*message.Inbound, *epoch.Pool, journal.Step, int)) {
	h := &e.sending.history
	switch {
	case !e.req.Own() && !e.fallsBack(failedFor(&h.Last, h.Own)):
		end(e.req.In, e.req.Pool, last, len(e.choice.Tried()))
	case last.Reason != journal.None:
		e.req.Journal.Unanswered(e.req.In, last)
	}
}
