package exchange

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/route"
	"github.com/warmpath/warmpath/daemon/session"
	"github.com/warmpath/warmpath/daemon/upstream"
	"github.com/warmpath/warmpath/daemon/worker"
)

// Config is what a Server needs of its process.
type Config struct {
	Log   *slog.Logger
	Meter Meter
}

// Server serves requests, each under the epoch that it brings. It is safe for concurrent use.
type Server struct {
	log   *slog.Logger
	meter Meter

	starved    atomic.Int64 // the second of the last line of noDescriptor
	failedPick atomic.Int64 // the second of the last line of logFailedPick
}

// New makes a server.
func New(c Config) *Server { return &Server{log: c.Log, meter: c.Meter} }

// Serve answers a plain request. It never fails: what goes wrong is an error in the endpoint's shape. If ctx ends, so
// does the request at the worker. ctx should be a [Life].
func (s *Server) Serve(ctx context.Context, in *Inbound) *Outbound {
	switch in.Endpoint.Role {
	case Malformed:
		in.Seen.End = FaultURL.Code
		return FaultURL.Outbound(in.Endpoint.Shape)
	case Models:
		return s.models(in)
	case Model:
		return s.model(in)
	}
	x := s.Begin(in, Entry{})
	return x.Serve(ctx)
}

// RefuseSession answers what is wrong with a session before a pool is chosen: a log line, a counter, an error in the
// path's shape.
func (s *Server) RefuseSession(in *Inbound, f Fault) *Outbound {
	s.meter.SessionRefused(in.Seen.Pool, f.Code)
	s.log.Info("session refused", "id", in.ID, "pool", in.Seen.Pool, "reason", f.Code, "path", gate.Cut(in.Path))
	in.Seen.End = f.Code
	return f.Outbound(in.Endpoint.Shape)
}

// logFailedPick logs whose request the module failed, beside the host's own line, which cannot know: one line a
// second, for a module that is broken fails on every request. A module that declines has not failed.
func (s *Server) logFailedPick(r *request) {
	seen := &r.in.Seen
	switch seen.Fallback {
	case "decline", "no_rows", "busy", "quarantined", "closed":
		return
	}
	now := time.Now().Unix()
	if s.failedPick.Swap(now) == now {
		return
	}
	r.log().Warn("the strategy failed on a request; the fallback chose its worker", "id", r.in.ID, "strategy", seen.Strategy,
		"reason", seen.Fallback, "error", r.pool.Strategy.Strategy().Stats().LastError)
}

// noDescriptor makes room for the next attempts and logs why this one failed: one line a second, as it happens to
// every request at once, and a disk that the lines fill would be the next to give out.
func (s *Server) noDescriptor(r *request) {
	for _, p := range r.epoch.Pools { // kept for 3.5 s, they may be more than requests are under way
		p.Clients.CloseIdle()
	}
	now := time.Now().Unix()
	if s.starved.Swap(now) == now {
		return
	}
	r.log().Error("no descriptor is left for a connection to a worker; raise the limit of open files (ulimit -n, LimitNOFILE)",
		"id", r.in.ID)
}

// Exchange is one request, from its choice of a worker to the last byte of its answer. It is one allocation with all
// that its first attempt needs: nearly always the only one.
type Exchange struct {
	request
	attempts attempts
	doubted  bool           // a 500 was not taken for the request's own: that is done once
	late     bool           // a worker was given up for its first byte: that is done once
	by       *worker.Worker // who answered

	sending upstream.Request
	first   attempt
	answer  body
	out     Outbound
	used    bool // first is
}

// Begin begins to serve a request.
func (s *Server) Begin(in *Inbound, entry Entry) *Exchange {
	e := new(Exchange) // and no literal, which would be made on the stack and copied
	e.server, e.in, e.epoch, e.entry, e.arrived = s, in, in.Epoch, entry, time.Now()
	e.headers.in = in
	return e
}

// Serve chooses and sends.
func (e *Exchange) Serve(ctx context.Context) *Outbound {
	if out := e.Choose(ctx); out != nil {
		return out
	}
	return e.Send(ctx)
}

// Choose decides where the request goes. Its answer, if there is one, refuses the request, and nothing else may be
// called.
func (e *Exchange) Choose(ctx context.Context) *Outbound {
	out := e.choose(ctx)
	if out != nil {
		e.release()
	}
	return out
}

// Pool is the chosen one's.
func (e *Exchange) Pool() *Pool { return e.pool }

// Chosen is the worker that comes first in the choice.
func (e *Exchange) Chosen() *worker.Worker { return e.choice.First() }

// By is the worker that answered, nil if none did.
func (e *Exchange) By() *worker.Worker { return e.by }

// Binding is where the request's session lived when it came.
func (e *Exchange) Binding() session.Binding { return e.choice.Binding() }

// Keep ends an exchange that the router answers itself, in place of Send.
func (e *Exchange) Keep() {
	e.in.Seen.Worker = e.Chosen().ID()
	e.server.meter.Placed(&e.in.Seen, time.Since(e.arrived))
	e.release()
}

// Send tries the workers in the order of the choice until one gives an answer that can go to the client. Up to then the
// client has seen nothing.
func (e *Exchange) Send(ctx context.Context) *Outbound {
	r := &e.sending
	defer func() { *r = upstream.Request{} }() // a stream would keep it for minutes
	*r = upstream.Request{Method: e.in.Method, Path: e.target(), Header: e.workerHeader(), Body: e.in.Body, Tail: e.in.Tail,
		TailLength: e.in.Left}
	if e.in.Query != "" {
		r.Path += "?" + e.in.Query
	}
	e.attempts.last = FaultUpstream
	var failed step
	for {
		to, ok := e.choice.Next(time.Now())
		if !ok {
			e.logNobodyLeft(failed)
			break
		}
		e.logStep(failed, to.Worker)
		failed = step{}
		out, why := e.try(ctx, to)
		if why == nil {
			return out
		}
		if ctx.Err() != nil {
			return e.done(e.abandoned(ctx))
		}
		if why.reason != reasonFull { // that is no failure
			failed = step{reason: why.reason, worker: to.Worker}
		}
		next := e.attempts.after(why, e.consumed(), e.choice.Left(), e.payRetry)
		if next == giveUp {
			break
		}
		if next == tryAgain {
			e.choice.Again()
		}
	}
	return e.done(e.refuse(e.attempts.last))
}

// done gives the exchange's memory back with an answer that is no stream.
func (e *Exchange) done(out *Outbound) *Outbound {
	e.release()
	return out
}

// payRetry takes a repeat from the pool's budget.
func (e *Exchange) payRetry() bool {
	if e.pool.Workers.MayRetry(time.Now()) {
		return true
	}
	e.server.meter.Shed(e.pool.Name, "retry_budget")
	return false
}

// try sends the request to one worker. On a failure its trip has ended.
func (e *Exchange) try(ctx context.Context, to route.Target) (*Outbound, *failure) {
	client := e.pool.Clients.Get(to.Worker.URL())
	if client == nil { // removed since the choice
		return nil, &failure{reason: reasonRemoved, fault: FaultUpstream, grade: unseen}
	}
	a := &e.first
	if e.used {
		a = new(attempt) // a late callback may still look at the first
	}
	e.used = true
	wait := e.pool.FirstByteRetry
	if !e.attempts.others(e.choice.Left()) || e.late {
		wait = 0
	}
	a.begin(ctx, wait > 0)
	if !e.choice.Send(&a.trip, to, a, time.Now()) {
		a.close()
		f := FaultNoWorker // it rests after failures, and its trial is another request
		if e.pool.Limited {
			f = FaultFull
		}
		return nil, &failure{reason: reasonFull, fault: f, grade: unseen}
	}
	e.in.Seen.Believed = e.choice.Believed()
	a.limit(wait)
	out, f := e.receive(client, a)
	if f == nil {
		return out, nil
	}
	switch f.reason {
	case reasonLate:
		e.late = true
	case reasonDown, reasonConnect:
		e.choice.Unreached(a.trip.Worker())
	case reasonNoDescriptor:
		e.server.noDescriptor(&e.request)
	}
	return nil, f
}

// receive sends an attempt's request and turns the response into the client's, or returns why it must not reach the
// client: then the trip has ended and the response is closed.
func (e *Exchange) receive(client *upstream.Client, a *attempt) (*Outbound, *failure) {
	resp, err := client.Do(a.ctx, &e.sending)
	if err != nil {
		f, o := a.classify(err)
		a.trip.End(&o, route.End{At: time.Now()})
		a.close()
		return nil, f
	}
	a.resp = resp
	b := &e.answer
	if a != &e.first {
		b = new(body)
	}
	b.begin(&e.request, a)
	if resp.Status == http.StatusServiceUnavailable && e.attempts.further(e.choice.Left(), e.choice.MayWiden()) {
		// it says: not me, somebody else
		return nil, b.discard(worker.Outcome{Kind: worker.Failed, Err: "HTTP 503"}, &failure{reason: reason503, fault: FaultNoWorker})
	}
	out := &e.out
	*out = Outbound{Status: resp.Status, Length: resp.Length}
	var f *failure
	if b.small() {
		if out.Body, f = b.whole(); f == nil {
			f = e.judge(b, out.Body)
		}
		if f == nil {
			out.Body = e.worded(out.Status, out.Body)
		}
	} else {
		out.Stream = b
		f = b.hold()
	}
	if f != nil {
		return nil, f
	}
	e.answered(a, b, out)
	return out, nil
}

// judge returns why an answer that came whole must not reach the client, or nil.
func (e *Exchange) judge(b *body, answer []byte) *failure {
	if f := b.dying(answer); f != nil {
		return f
	}
	if status := b.a.resp.Status; (status == 500 || status == 502 || status == 504) && e.doubts(b.a.trip.Worker()) {
		return b.discard(worker.Outcome{Kind: worker.Failed, Err: "HTTP status of 500 or more"},
			&failure{reason: reason500, fault: FaultUpstream, paid: true})
	}
	return b.understand(answer)
}

// bare are the bodies by which a worker tells that it has no such path or method (Starlette's own). The SDKs of
// clients find no message in them.
var bare = map[string]bool{`{"detail":"Not Found"}`: true, `{"detail":"Method Not Allowed"}`: true}

// worded puts a bare refusal of a worker into the endpoint's shape, with words. Every other body stays as it is.
func (e *Exchange) worded(status int, body []byte) []byte {
	if status != http.StatusNotFound && status != http.StatusMethodNotAllowed || e.entry.Door != nil || !bare[string(body)] {
		return body
	}
	f := FaultUnknownURL
	f.Message = "the worker serves no " + gate.Cut(e.in.Method+" "+e.in.Path)
	return f.body(e.shape())
}

// answered completes the head of an answer that goes to the client.
func (e *Exchange) answered(a *attempt, b *body, out *Outbound) {
	w, seen := a.trip.Worker(), &e.in.Seen
	seen.Stream, seen.Worker, seen.Matched = b.events, w.ID(), a.trip.Matched()
	e.explain(out)
	e.by = w
	if e.choice.Answered(w, out.Status < 400) && e.cookie != "" {
		c := http.Cookie{Name: e.epoch.Sessions.Cookie, Value: e.cookie, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteLaxMode, Secure: e.in.TLS}
		out.Set("Set-Cookie", c.String())
	}
	out.Header = clientHeader(out.Header, a.resp.Header)
	if out.Status == http.StatusServiceUnavailable && a.resp.Header.Get("Retry-After") == "" {
		out.Set("Retry-After", "1")
	}
	if out.Stream == nil {
		b.finish(io.EOF)
		b.Close()
	} else {
		e.choice.Release() // a stream may last for minutes, and rows of 256 workers are 32 KB
	}
}

// doubts tells whether a failed answer is taken for the worker's fault: once, if another worker can be asked and this
// one fails far more often than the others.
func (e *Exchange) doubts(w *worker.Worker) bool {
	if e.doubted || !e.attempts.others(e.choice.Left()) || e.consumed() || !e.understood() || !e.pool.Workers.FailsAlone(w) ||
		!e.pool.Workers.MayRetry(time.Now()) {
		return false
	}
	e.doubted = true
	return true
}

// logStep counts and logs that the request goes from one worker to the next. That may be the same one again: it
// closed an idle connection.
func (e *Exchange) logStep(failed step, next *worker.Worker) {
	if failed.reason == reasonNone {
		return
	}
	seen := &e.in.Seen
	seen.Retries++
	seen.Attempts = append(seen.Attempts, route.Attempt{Worker: failed.worker.ID(), Reason: string(failed.reason)})
	e.server.meter.Retried(e.pool.Name, string(failed.reason))
	if failed.reason == reasonNoDescriptor { // that has its own line
		return
	}
	e.log().Info("request goes to the next worker", "id", e.in.ID, "worker", failed.worker.ID(), "reason", string(failed.reason),
		"next", next.ID())
}

// logNobodyLeft logs that the last of the workers has failed too: the client gets an error.
func (e *Exchange) logNobodyLeft(failed step) {
	if failed.reason == reasonNone || failed.reason == reasonNoDescriptor {
		return
	}
	e.log().Warn("no worker is left for the request: its client gets an error", "id", e.in.ID, "worker", failed.worker.ID(),
		"reason", string(failed.reason), "tried", len(e.choice.Tried()))
}
