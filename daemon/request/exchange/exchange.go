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
	request
	sending *sending                // nil but for the time of Send
	under   atomic.Pointer[attempt] // at a worker, the last one
	late    bool                    // a worker was given up as its first byte was late: that is done once
	moved   bool                    // a worker was given up because it is silent: that is done once
	tries   uint32                  // attempts
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
	if e.in.Endpoint.Adapters {
		if to := callees(&e.request); to != nil {
			return callAll(ctx, &e.request, to)
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
			e.turn.leave()
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
func (e *Exchange) Pool() *epoch.Pool { return e.pool }

// Chosen returns the worker that comes first in the choice.
func (e *Exchange) Chosen() *worker.Worker { return e.choice.First() }

// By returns the worker that answered, nil if none did.
func (e *Exchange) By() *worker.Worker { return e.by }

// Binding returns where the request's session lived when it came.
func (e *Exchange) Binding() session.Binding { return e.choice.Binding() }

// Keep ends an exchange that the router answers itself, in place of Send.
func (e *Exchange) Keep() {
	e.in.Seen.Worker = e.Chosen().ID()
	e.pool.Workers.Place(e.Chosen(), time.Now())
	e.in.Account.Sent()
	e.journal.Meter.Placed(&e.in.Seen, time.Since(e.arrived))
	e.release()
}

// Send tries the workers in the order of the choice until one gives an answer that can go to the client. Until then the
// client has seen nothing.
func (e *Exchange) Send(ctx context.Context) *message.Outbound {
	r := sendings.Get().(*sending)
	e.sending = r
	defer func() {
		e.turn.leave()
		r.pairing.free()
		e.sending = nil
		r.end()
	}()
	e.prepare(r)
	r.attempts.last = message.FaultUpstream
	r.attempts.Broken = int32(e.deaths)
	r.attempts.patience = latePatience
	if e.entry.Op == message.Prefilling || e.alias.After(names.Down) != nil {
		r.attempts.patience = lateElse
	}
	var failed journal.Step
	for {
		r.At = time.Now()
		r.Fresh = e.mistaken
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
			e.noteEnd(failed, e.journal.NobodyLeft)
			break
		}
		e.journal.PassedOn(e.in, e.pool, failed, to.Worker)
		failed = journal.Step{}
		out, why := e.sendTo(ctx, to)
		if why == nil {
			return out
		}
		if ctx.Err() != nil {
			if why.reason != journal.Full {
				e.journal.Unanswered(e.in, journal.Step{Reason: endedFor(ctx), Worker: to.Worker, After: time.Since(e.arrived)})
			}
			return e.releasing(e.abandon(ctx))
		}
		if why.reason != journal.Full { // that is no failure
			failed = journal.Step{Reason: why.reason, Worker: to.Worker, After: time.Since(e.arrived)}
		}
		next := r.attempts.after(why, e.consumed(), e.choice.Left(), e.payRetry)
		if next == route.GiveUp {
			e.noteEnd(failed, e.journal.GaveUp)
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
	r.Request = upstream.Request{Method: e.in.Method, Path: e.target(),
		Header: message.WorkerHeader(r.Header, e.in, e.id, e.pool, e.entry.Door), Mark: epoch.MarkOf(e.id)}
	e.makeBody(r)
	r.pairing = pairs(&e.request, &r.Request)
	if e.entry.Door != nil {
		r.Header = e.entry.Door.Header(r.Header, e.pool, e.choice.Binding())
	}
	if e.in.Query != "" {
		r.Path += "?" + e.in.Query
	}
}

// makeBody makes the body that a worker gets.
func (e *Exchange) makeBody(r *sending) {
	r.Body, r.behind, r.Tail, r.TailLength = e.in.Body, nil, e.in.Tail, e.in.Left
	r.edit(&e.request)
	if e.in.Tail == nil && e.in.Kept == nil && e.pool.WantsIDs() {
		r.Body = tokens.Unreported(r.Body)
	}
	if e.lesson != nil {
		r.Body = tokens.WithIDs(r.Body)
	}
	if isWhole(&e.request) { // the client names no prefiller to a worker
		r.Body = pair.Alone(r.Body)
	}
	r.keepAlone(&e.request)
}

// unask makes the request anew for a worker that refuses to be asked for the usage. It stays so, wherever it goes then.
func (e *Exchange) unask() {
	s := e.sending
	e.unasked = true
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
	client := e.pool.Clients.Get(to.Worker.URL())
	if client == nil { // removed since the choice
		return nil, &failure{reason: journal.Removed, fault: message.FaultUpstream, grade: route.GradeUnseen}
	}
	release, why := loadAdapter(ctx, &e.request, e.sending, to.Worker)
	if why != nil {
		return nil, why
	}
	defer release()
	a := &e.first
	if e.tries > 0 {
		a = new(attempt) // a late callback may still look at the first
	}
	e.tries++
	wait := e.pool.FirstByteRetry
	if !e.sending.attempts.Others(e.choice.Left()) || e.late || e.in.Tail != nil { // a Tail is sent once
		wait = 0
	}
	if e.mayMove() {
		a.payer = e.pool.Workers
	}
	if e.read.asks && e.pool.Clients.Mutes(to.Worker.URL()) {
		e.unask()
	}
	p := e.sending.pairing
	p.reset()
	to.Handed = p.splits(to)
	to.Coming = to.Handed && p.precedes()
	a.begin(ctx, wait > 0 || to.Handed && p.Connector.AtOnce())
	if !e.choice.Send(&a.trip, to, a, e.sending.At) {
		a.close()
		f := message.FaultNoWorker // the worker rests after failures, and its trial is another request
		if e.pool.Limited {
			f = message.FaultFull
		}
		return nil, &failure{reason: journal.Full, fault: f, grade: route.GradeUnseen}
	}
	e.in.Account.Take(&a.place, account.Worker, 1)
	e.in.Seen.Believed, e.in.Seen.Live = e.choice.Believed(), a.trip.Live()
	e.sending.Header = message.PinRank(e.sending.Header, cmp.Or(message.ClientRank(e.in, e.pool), to.Worker.RankHeader()))
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
		p.prefill(ctx, a, to)
		defer p.end()
	}
	if !e.arrives(ctx, a, to) {
		returned = true
		return nil, e.crowdedOut(a, p)
	}
	if wait > 0 {
		workers := e.pool.Workers
		a.limit(wait, func() bool { return workers.MayRetry(time.Now()) })
	}
	e.sending.rewind(e.in)
	out, f := e.receive(client, a)
	returned = true
	p.ended(out, f, ctx.Err() != nil && a.resp == nil)
	if f == nil {
		return out, nil
	}
	f.by = to.Worker
	e.noteFailure(f, a.trip.Worker())
	return nil, f
}

// arrives reports whether the worker gets the request now. If its prompt was computed elsewhere meanwhile, others may
// have the last places.
func (e *Exchange) arrives(ctx context.Context, a *attempt, to route.Target) bool {
	if ctx.Err() != nil {
		return true
	}
	if to.Coming {
		if !a.trip.Arrive() {
			return false
		}
		a.trip.Charge.From(time.Now())
	}
	e.in.Account.Sent()
	return true
}

// crowdedOut ends an attempt whose prompt was computed elsewhere while others took the last places of its worker.
func (e *Exchange) crowdedOut(a *attempt, p *pairing) *failure {
	a.endTrip(&judge.Outcome{Kind: judge.Canceled}, route.End{At: time.Now()})
	a.close()
	f := &failure{reason: journal.Full, fault: message.FaultFull, grade: route.GradeUnseen}
	p.ended(nil, f, false)
	e.computed = p.handed != nil
	return f
}

// mayMove reports whether the request may leave a worker for its silence: another one may take it, or it is a prefill,
// without which the worker that answers does.
func (e *Exchange) mayMove() bool {
	return !e.moved && e.in.Tail == nil &&
		(e.entry.Op == message.Prefilling || e.sending.attempts.Further(e.choice.Left(), !e.choice.Pinned()))
}

// noteFailure records what a failed attempt shows of its worker, and of the request.
func (e *Exchange) noteFailure(f *failure, w *worker.Worker) {
	switch f.reason {
	case journal.Late:
		e.late = true
	case journal.Moved:
		e.moved = true
	case journal.NoAnswer:
		e.lostAt(w, time.Now())
	case journal.Dying:
		e.lostAt(w, time.Now().Add(dyingFor))
	case journal.Down, journal.Connect, journal.ConnectLate:
		e.choice.Unreached(w)
		if f.late {
			e.choice.NotHad()
		}
	case journal.NoDescriptor:
		for _, p := range e.epoch.Pools { // connections are kept for 3.5 s, and may be more than requests are under way
			p.Clients.CloseIdle()
		}
		e.journal.NoDescriptor(e.in, e.pool)
	}
}

// receive sends an attempt's request and turns the response into the client's. Or it returns why the response must not
// reach the client; it has then ended the trip and closed the response.
func (e *Exchange) receive(client *upstream.Client, a *attempt) (*message.Outbound, *failure) {
	if err := client.DoInto(a.ctx, &e.sending.Request, &a.answer); err != nil {
		f, o := a.diagnose(err)
		o.Partly = e.in.Tail != nil
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
	b.start(&e.request, a, &e.sending.attempts)
	w := weigher{request: &e.request, tries: &e.sending.attempts}
	out := &e.out
	*out = message.Outbound{Status: resp.Status, Length: b.length()}
	if b.small() {
		text, f := b.whole()
		if f == nil {
			text = e.hideTarget(resp.Status, text)
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
	a, seen := b.a, &e.in.Seen
	w := a.trip.Worker()
	if b.ok && e.in.Endpoint.Adapters {
		changed(&e.request)
		renewList(a.ctx, &e.request, w)
	}
	seen.Stream = b.events
	seen.Worker = w.ID()
	seen.Matched = int32(a.trip.Matched())
	seen.Passed = e.choice.PassedOn()
	if seen.Passed {
		seen.Reason = e.choice.Reason()
	}
	out.Header = e.clientHeader(a.resp.Header)
	if b.against == judge.Canceled && b.ok {
		b.tries.accepted()
	}
	if (e.deaths > 0 || e.tries > 1) && b.against != judge.Failed && b.against != judge.Dying {
		e.lethal.acquit(e.in)
	}
	if out.Status >= 300 && out.Status < 400 {
		message.StayHere(out.Header, w.URL())
	}
	if b.against == judge.Busy {
		out.ComeBackIn(message.Asked(message.FaultNoWorker, out.Header).Measured(e.pool, time.Now()).Retry)
	}
	e.explain(out)
	e.tellModel(out)
	e.limits.tell(out, e.shape())
	e.by = w
	if e.choice.Answered(w, out.Status < 400 && b.against != judge.Denied) && e.seldom().cookie != "" {
		c := http.Cookie{Name: e.epoch.Sessions.Cookie, Value: e.rare.cookie, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteLaxMode, Secure: e.in.TLS}
		out.Set("Set-Cookie", c.String())
	}
	if out.Stream == nil {
		b.finish(io.EOF)
		b.Close()
	} else {
		e.choice.Release() // a stream may last for minutes, and rows of 256 workers are 32 KB
		e.read.req.Trim()
	}
}

// noteEnd logs the end of the attempts, as end does for a client that gets an error. Of a prefill no client does.
func (e *Exchange) noteEnd(last journal.Step, end func(*message.Inbound, *epoch.Pool, journal.Step, int)) {
	a := &e.sending.attempts
	switch {
	case e.entry.Op != message.Prefilling && !e.fallsBack(failedFor(&a.last, a.own)):
		end(e.in, e.pool, last, len(e.choice.Tried()))
	case last.Reason != journal.None:
		e.journal.Unanswered(e.in, last)
	}
}
