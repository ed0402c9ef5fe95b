package sessionapi

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/sagemaker"
	"github.com/warmpath/warmpath/daemon/session"
	"github.com/warmpath/warmpath/daemon/upstream"
	"github.com/warmpath/warmpath/daemon/worker"
)

// maxOpening bounds the answer to an opening, which is held whole.
const maxOpening = 16 << 20

// open serves NEW_SESSION. Attempts of one call, which SDKs repeat when an answer is late, open one session.
func (a *API) open(ctx context.Context, in *exchange.Inbound, c *sagemaker.Call) *exchange.Outbound {
	id := ""
	if c.InvocationID != "" {
		id = in.Caller.Name + "\x00" + c.Endpoint + "\x00" + c.InvocationID
	}
	r, _, err := a.opens.Do(ctx, id, func() sagemaker.Result {
		out, ok := a.openOnce(ctx, in, c)
		r := sagemaker.Result{OK: ok, Status: out.Status, Body: out.Body}
		for _, f := range out.Header {
			r.Header = append(r.Header, [2]string{f.Name, f.Value})
		}
		return r
	})
	if err != nil {
		f := exchange.FaultStopping
		if errors.Is(err, exchange.ErrClientGone) {
			f = exchange.FaultGone
		}
		return f.Outbound(in.Endpoint.Shape)
	}
	out := &exchange.Outbound{Status: r.Status, Body: r.Body}
	for _, h := range r.Header {
		out.Header = append(out.Header, upstream.Field{Name: h[0], Value: h[1]})
	}
	return out
}

// openOnce makes one attempt, and tells whether a session was opened.
func (a *API) openOnce(ctx context.Context, in *exchange.Inbound, c *sagemaker.Call) (out *exchange.Outbound, ok bool) {
	x := a.server.Begin(in, entry(in, c))
	if out := x.Choose(ctx); out != nil {
		return out, false
	}
	p, w := x.Pool(), x.Chosen()
	if c.InBody && !keepsSessions(p, w) {
		x.Keep()
		return a.enter(in, c, opened{pool: p, worker: w, answer: &exchange.Outbound{Status: 200}})
	}
	out = x.Send(ctx)
	w = x.By()
	if w == nil {
		return out, false
	}
	text, cut, err := out.Whole(maxOpening)
	switch {
	case err != nil || cut:
		a.log.Warn("the answer to an opening broke off or is too long", "id", in.ID, "pool", p.Name, "worker", w.ID(),
			"bytes", len(text), "error", err)
		return a.server.RefuseSession(in, exchange.FaultOpening), false
	case c.InBody && knowsNoSessions(out.Status, text) && p.WorkerSessions == "auto":
		p.NoteSessionless(w)
		return a.enter(in, c, opened{pool: p, worker: w, answer: &exchange.Outbound{Status: 200}})
	case out.Status < 200 || out.Status > 299:
		a.server.RefuseSession(in, exchange.FaultOpening)
		return translate(&exchange.Outbound{Status: out.Status, Header: out.Header, Body: text}, in, c), false
	}
	return a.enter(in, c, opened{pool: p, worker: w, heard: true,
		answer: &exchange.Outbound{Status: out.Status, Header: out.Header, Body: text}})
}

// knowsNoSessions tells from the answer to a body with NEW_SESSION that the worker keeps none: vLLM's word where they
// are switched off, and of its releases that look for a prompt in it.
func knowsNoSessions(status int, body []byte) bool {
	text := string(body[:min(len(body), 4096)])
	return status == 404 || status == 405 || status == 422 ||
		status == 400 && (strings.Contains(text, "not enabled") || strings.Contains(text, "suitable handler"))
}

// opened is a session that a worker has agreed to, or that the router alone holds.
type opened struct {
	pool   *exchange.Pool
	worker *worker.Worker
	answer *exchange.Outbound
	heard  bool // the worker took the opening in
}

// enter binds an opened session and adds its id to the answer.
func (a *API) enter(in *exchange.Inbound, c *sagemaker.Call, o opened) (*exchange.Outbound, bool) {
	in.Seen.Worker = o.worker.ID()
	id, expires, minted, bad := sagemaker.Opened(o.answer.Get)
	if bad != nil {
		return a.refuseOpening(in, o.worker, bad), false
	}
	if !minted {
		id = session.MintID()
	}
	b, err := o.pool.Sessions.Open(in.Opened(id), session.Binding{Worker: o.worker.ID(), Minted: minted, Heard: o.heard, Expires: expires},
		time.Now())
	if err != nil {
		return a.refuseOpening(in, o.worker, err), false
	}
	out := o.answer
	if out.Body == nil { // vLLM's words
		out.Body = []byte("Session " + id + " created")
		out.Set("Content-Type", "text/plain; charset=utf-8")
	}
	out = translate(out, in, c)
	out.Set(sagemaker.HeaderNewSession, sagemaker.FormatNew(id, b.Expires))
	return out, true
}

func (a *API) refuseOpening(in *exchange.Inbound, w *worker.Worker, err error) *exchange.Outbound {
	a.log.Warn("a worker opened a session that cannot be kept", "id", in.ID, "pool", in.Seen.Pool, "worker", w.ID(), "error", err)
	return a.server.RefuseSession(in, exchange.FaultOpening)
}
