package exchange

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/epoch"
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
	computed bool           // a prefiller keeps the KV of the prompt, and no decoder had a place for the request
	late     bool           // a worker was given up as its first byte was late: that is done once
	moved    bool           // a worker was given up because it is silent: that is done once
	deaths   int8           // workers that have ended with this request before
	falls    names.Reason   // why it goes to another model now; 0 = it does not
	tries    uint16         // attempts

	sending *sending                // nil but for the time of Send
	under   atomic.Pointer[attempt] // at a worker, the last one
	by      *worker.Worker          // the worker that answered

	first  attempt
	answer stream
	out    message.Outbound
}

// exchanges keeps those that are forgotten: 1.8 KB that a request would allocate.
var exchanges = sync.Pool{New: func() any { return new(Exchange) }}

// forgotten reports whether nobody else can use the exchange any more. Its only attempt was read to its end, and
// nothing can call it late: neither its worker's fall, nor a context of its own, nor a deadline.
func (e *Exchange) forgotten() bool {
	a := &e.first
	return e.tries == 1 && e.by != nil && e.out.Stream == nil && e.lesson == nil && a.life != nil && a.trip.Silent()
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
		e.release()
	}
	return out
}

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
	e.release()
}

// Send tries the workers in the order of the choice until one gives an answer that can go to the client. Until then the
// client has seen nothing.
func (e *Exchange) Send(ctx context.Context) *message.Outbound {
	r := sendings.Get().(*sending)
	e.sending = r
	defer func() {
		e.req.Place.Leave()
		r.pairing.free()
		e.sending = nil
		r.end()
	}()
	e.prepare(r)
	r.attempts.choice, r.attempts.lesson = &e.choice, e.lesson
	r.attempts.last = message.FaultUpstream
	r.attempts.Broken = int32(e.deaths)
	r.attempts.patience = latePatience
	if e.req.Entry.Op == message.Prefilling || e.req.Alias.After(names.Down) != nil {
		r.attempts.patience = lateElse
	}
	var failed journal.Step
	for {
		r.At = time.Now()
		r.Fresh = r.attempts.mistaken
		to, ok := e.choice.Next(r.At)
		if !ok {
			f := e.waitAgain(ctx)
			switch {
			case f == nil:
				continue
			case f == &message.FaultGone:
				return e.releasing(e.abandon(ctx))
			case f != &unqueued && route.Trips(&e.choice) == 0: // else the worker's failure is the answer
				r.attempts.last, r.attempts.own = *f, nil
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
			if why.reason != journal.Full {
				e.req.Journal.Unanswered(e.req.In, journal.Step{Reason: endedFor(ctx), Worker: to.Worker,
					After: time.Since(e.req.Arrived)})
			}
			return e.releasing(e.abandon(ctx))
		}
		if why.reason != journal.Full { // that is no failure
			failed = journal.Step{Reason: why.reason, Worker: to.Worker, After: time.Since(e.req.Arrived)}
		}
		next := r.attempts.after(why, e.req.Consumed(), e.choice.Left(), e.req.PayRetry)
		if next == route.GiveUp {
			e.noteEnd(failed, e.req.Journal.GaveUp)
			break
		}
		if next == route.TryAgain || why.asksAgain() {
			r.pairing.stop(why)
			e.choice.Again(time.Now())
		}
	}
	return e.releasing(e.refuseAs(r.attempts.last, r.attempts.own))
}

// prepare makes what a worker gets.
func (e *Exchange) prepare(r *sending) {
	r.Request = upstream.Request{Method: e.req.In.Method, Path: e.req.Target(),
		Header: message.WorkerHeader(r.Header, e.req.In, e.req.ID, e.req.Pool, e.req.Entry.Door),
		Mark:   epoch.MarkOf(e.req.ID)}
	e.makeBody(r)
	r.pairing = pairs(&e.req, &e.choice, &r.Request)
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
	if admission.IsWhole(&e.req) { // the client names no prefiller to a worker
		r.Body = pair.Alone(r.Body)
	}
	r.keepAlone(&e.req)
}

// unask makes the request anew for a worker that refuses to be asked for the usage. It stays so, wherever it goes then.
func (e *Exchange) unask() {
	s := e.sending
	s.unasked = true
	e.makeBody(s)
	if s.pairing != nil {
		s.pairing.body = s.Body
	}
}

// releasing gives the exchange's memory back, and returns its answer, which is no stream.
func (e *Exchange) releasing(out *message.Outbound) *message.Outbound {
	e.release()
	return out
}

// sendTo sends the request to one worker. If it fails, it has ended the trip.
func (e *Exchange) sendTo(ctx context.Context, to route.Target) (*message.Outbound, *failure) {
	client := e.req.Pool.Clients.Get(to.Worker.URL())
	if client == nil { // removed since the choice
		return nil, &failure{reason: journal.Removed, fault: message.FaultUpstream, grade: route.GradeUnseen}
	}
	release, why := loadAdapter(ctx, e, e.sending, to.Worker)
	if why != nil {
		return nil, why
	}
	defer release()
	a := &e.first
	if e.tries > 0 {
		a = new(attempt) // a late callback may still look at the first
	}
	e.tries++
	wait := e.req.Pool.FirstByteRetry
	if !e.sending.attempts.Others(e.choice.Left()) || e.late || e.req.In.Tail != nil { // a Tail is sent once
		wait = 0
	}
	if e.mayMove() {
		a.payer = e.req.Pool.Workers
	}
	if e.req.Read.Asks && e.req.Pool.Clients.Mutes(to.Worker.URL()) {
		e.unask()
	}
	p := e.sending.pairing
	p.reset()
	to.Handed = p.splits(to)
	to.Coming = to.Handed && p.handed == nil // else a prefiller has computed it for an earlier decoder
	a.begin(ctx, wait > 0 || to.Handed && !p.Connector.InTurn())
	if !e.choice.Send(&a.trip, to, a, e.sending.At) {
		a.close()
		f := message.FaultNoWorker // the worker rests after failures, and its trial is another request
		if e.req.Pool.Limited {
			f = message.FaultFull
		}
		return nil, &failure{reason: journal.Full, fault: f, grade: route.GradeUnseen}
	}
	e.req.In.Account.Take(&a.place, account.Worker, 1)
	e.req.In.Seen.Believed, e.req.In.Seen.Live = e.choice.Believed(), a.trip.Live()
	e.sending.Header = message.PinRank(e.sending.Header, cmp.Or(message.ClientRank(e.req.In, e.req.Pool),
		to.Worker.RankHeader()))
	e.under.Store(a)
	returned := false
	defer func() {
		if !returned { // a panic: the worker's count comes down, and the front answers
			a.endTrip(&judge.Outcome{Kind: judge.Canceled}, route.End{At: time.Now()})
			a.close()
		}
	}()
	e.charge(&a.trip, to, e.sending.At)
	if to.Handed {
		f := p.prefill(ctx, a, to)
		defer p.end()
		if f != nil {
			returned = true
			a.withdraw()
			return nil, f
		}
	}
	if !e.arrives(ctx, a, to) {
		returned = true
		return nil, e.crowdedOut(a, p)
	}
	if wait > 0 {
		workers := e.req.Pool.Workers
		a.limit(wait, func() bool { return workers.MayRetry(time.Now()) })
	}
	e.sending.rewind(e.req.In)
	out, f := e.receive(client, a)
	returned = true
	p.ended(out, f, ctx.Err() != nil && a.resp == nil)
	if f == nil {
		return out, nil
	}
	f.by = to.Worker
	e.falls = cmp.Or(e.falls, f.falls)
	e.noteFailure(f, a.trip.Worker())
	return nil, f
}

// arrives reports whether the worker gets the request now. While its prompt was computed elsewhere, or waited to be,
// others may have taken the last places.
func (e *Exchange) arrives(ctx context.Context, a *attempt, to route.Target) bool {
	if ctx.Err() != nil {
		return true
	}
	if to.Coming {
		now := time.Now()
		if !a.trip.Arrive(e.sending.pairing.prompt(a), now) {
			return false
		}
		a.trip.Charge.From(now)
	}
	e.req.In.Account.Sent()
	return true
}

// crowdedOut ends an attempt whose prompt was computed elsewhere while others took the last places of its worker.
func (e *Exchange) crowdedOut(a *attempt, p *pairing) *failure {
	a.withdraw()
	f := &failure{reason: journal.Full, fault: message.FaultFull, grade: route.GradeUnseen}
	p.ended(nil, f, false)
	e.computed = p.handed != nil
	return f
}

// mayMove reports whether the request may leave a worker for its silence: another one may take it, or it is a prefill,
// without which the worker that answers does.
func (e *Exchange) mayMove() bool {
	return !e.moved && e.req.In.Tail == nil &&
		(e.req.Entry.Op == message.Prefilling || e.sending.attempts.Further(e.choice.Left(), !e.choice.Pinned()))
}

// noteFailure records what a failed attempt shows of its worker, and of the request.
func (e *Exchange) noteFailure(f *failure, w *worker.Worker) {
	switch f.reason {
	case journal.Late:
		e.late = true
	case journal.Moved:
		e.moved = true
	case journal.NoAnswer:
		e.req.LostAt(w, time.Now())
	case journal.Dying:
		e.req.LostAt(w, time.Now().Add(admission.DyingFor))
	case journal.Down, journal.Connect, journal.ConnectLate:
		e.choice.Unreached(w)
		if f.late {
			e.choice.NotHad()
		}
	case journal.NoDescriptor:
		// connections are kept for 3.5 s, and may be more than requests are under way
		for _, p := range e.req.Epoch.Pools {
			p.Clients.CloseIdle()
		}
		e.req.Journal.NoDescriptor(e.req.In, e.req.Pool)
	}
}

// receive sends an attempt's request and turns the response into the client's. Or it returns why the response must not
// reach the client; it has then ended the trip and closed the response.
func (e *Exchange) receive(client *upstream.Client, a *attempt) (*message.Outbound, *failure) {
	if err := client.DoInto(a.ctx, &e.sending.Request, &a.answer); err != nil {
		f, o := a.diagnose(err)
		o.Partly = e.req.In.Tail != nil
		e.sending.attempts.settle(&a.trip, &o)
		a.endTrip(&o, route.End{At: time.Now()})
		a.close()
		return nil, f
	}
	resp := &a.answer
	a.resp = resp
	b := &e.answer
	if a != &e.first {
		b = new(stream)
	}
	b.start(&e.req, a, &e.sending.attempts)
	w := weigher{req: &e.req, tries: &e.sending.attempts}
	out := &e.out
	*out = message.Outbound{Status: resp.Status, Length: b.length()}
	if b.small() {
		text, f := b.whole()
		if f == nil {
			text = e.req.HideTarget(resp.Status, text)
			f = w.judge(&b.body, text)
		}
		if f != nil {
			return nil, f
		}
		out.Body = w.wordRefusal(out.Status, text)
	} else {
		f := w.weigh(&b.body, nil)
		if f == nil {
			f = b.awaitOutput(func(held []byte) *failure {
				if !b.events {
					return w.decide(&b.body, judge.Outcome{Kind: judge.Denied, Err: errFormless}, nil)
				}
				return w.weighHidden(&b.body, held)
			})
		}
		if f != nil {
			return nil, f
		}
		out.Stream = b
	}
	e.complete(out, b)
	return out, nil
}

// complete fills in the head of an answer that goes to the client, and ends the exchange if it came whole.
func (e *Exchange) complete(out *message.Outbound, b *stream) {
	a, seen := b.a, &e.req.In.Seen
	w := a.trip.Worker()
	if b.ok && e.req.In.Endpoint.Adapters {
		changed(&e.req)
		renewList(a.ctx, &e.req, w)
	}
	seen.Stream = b.events
	seen.Worker = w.ID()
	seen.Matched = int32(a.trip.Matched())
	seen.Passed = e.choice.PassedOn()
	if seen.Passed {
		seen.Reason = e.choice.Reason()
	}
	out.Header = e.req.ClientHeader(a.resp.Header)
	if b.against == judge.Canceled && b.ok {
		b.tries.accepted()
	}
	if (e.deaths > 0 || e.tries > 1) && b.against != judge.Failed && b.against != judge.Dying {
		e.req.Lethal.Acquit(e.req.In)
	}
	if out.Status >= 300 && out.Status < 400 {
		message.StayHere(out.Header, w.URL())
	}
	if b.against == judge.Busy {
		out.ComeBackIn(message.Asked(message.FaultNoWorker, out.Header).Measured(e.req.Pool, time.Now()).Retry)
	}
	e.explain(out)
	e.req.TellModel(out)
	e.req.Limits.Tell(out, e.req.Shape())
	e.by = w
	if e.choice.Answered(w, out.Status < 400 && b.against != judge.Denied) && e.req.Cookie != "" {
		c := http.Cookie{Name: e.req.Epoch.Sessions.Cookie, Value: e.req.Cookie, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteLaxMode, Secure: e.req.In.TLS}
		out.Set("Set-Cookie", c.String())
	}
	if out.Stream == nil {
		b.finish(io.EOF)
		b.Close()
	} else {
		e.req.Read.Req.Trim()
	}
	e.choice.Release() // a stream may last for minutes, and rows of 256 workers are 32 KB
}

// noteEnd logs the end of the attempts, as end does for a client that gets an error. Of a prefill no client does.
func (e *Exchange) noteEnd(last journal.Step, end func(*message.Inbound, *epoch.Pool, journal.Step, int)) {
	a := &e.sending.attempts
	switch {
	case e.req.Entry.Op != message.Prefilling && !e.fallsBack(failedFor(&a.last, a.own)):
		end(e.req.In, e.req.Pool, last, len(e.choice.Tried()))
	case last.Reason != journal.None:
		e.req.Journal.Unanswered(e.req.In, last)
	}
}
