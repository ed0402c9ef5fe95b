package daemon

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/sagemaker"
	"github.com/warmpath/warmpath/daemon/session"
	"github.com/warmpath/warmpath/daemon/upstream"
	"github.com/warmpath/warmpath/daemon/worker"
)

// maxOpening bounds the answer to an opening, which is held whole.
const maxOpening = 16 << 20

// open serves NEW_SESSION. Attempts of one call, which SDKs repeat when an answer is late, open one session.
func (d *Daemon) open(ctx context.Context, in *Inbound, c *sagemaker.Call) *Outbound {
	id := ""
	if c.InvocationID != "" {
		id = in.Caller.Name + "\x00" + c.Endpoint + "\x00" + c.InvocationID
	}
	r, _, err := d.opens.Do(ctx, id, func() sagemaker.Result {
		out, ok := d.openOnce(ctx, in, c)
		r := sagemaker.Result{OK: ok, Status: out.Status, Body: out.Body}
		for _, f := range out.Header {
			r.Header = append(r.Header, [2]string{f.Name, f.Value})
		}
		return r
	})
	if err != nil {
		f := faultStopping
		if errors.Is(err, errClientGone) {
			f = faultGone
		}
		return f.outbound(shapeOf(in.Path))
	}
	out := &Outbound{Status: r.Status, Body: r.Body}
	for _, h := range r.Header {
		out.Header = append(out.Header, upstream.Field{Name: h[0], Value: h[1]})
	}
	return out
}

// openOnce makes one attempt. ok tells that a session was opened.
func (d *Daemon) openOnce(ctx context.Context, in *Inbound, c *sagemaker.Call) (out *Outbound, ok bool) {
	e := d.begin(in)
	e.call = c
	if out := e.route(ctx); out != nil {
		e.release()
		return out, false
	}
	p, w := e.pool, e.view.workers[e.result.Row]
	if c.InBody && !p.keepsSessions(w) {
		e.kept(w)
		return d.enter(in, c, p, w, &Outbound{Status: 200}, false)
	}
	out, streaming := e.send(ctx)
	w = e.by
	if !streaming {
		e.release()
	}
	if w == nil {
		return out, false
	}
	text, cut, err := whole(out, maxOpening)
	switch {
	case err != nil || cut:
		p.log.Warn("the answer to an opening broke off or is too long", "id", in.ID, "worker", w.ID(), "bytes", len(text), "error", err)
		return d.refuseCall(in, faultOpening), false
	case c.InBody && knowsNoSessions(out.Status, text) && p.set.Load().conf.WorkerSessions == "auto":
		p.without.Store(w.Slot(), struct{}{})
		return d.enter(in, c, p, w, &Outbound{Status: 200}, false)
	case out.Status < 200 || out.Status > 299:
		d.refuseCall(in, faultOpening)
		return told(&Outbound{Status: out.Status, Header: out.Header, Body: text}, in, c), false
	}
	return d.enter(in, c, p, w, &Outbound{Status: out.Status, Header: out.Header, Body: text}, true)
}

// knowsNoSessions tells from the answer to a body with NEW_SESSION that the worker keeps none: vLLM's word where they are
// switched off, and of its releases that look for a prompt in it.
func knowsNoSessions(status int, body []byte) bool {
	text := string(body[:min(len(body), 4096)])
	return status == 404 || status == 405 || status == 422 ||
		status == 400 && (strings.Contains(text, "not enabled") || strings.Contains(text, "suitable handler"))
}

// kept ends an exchange that the router answers itself, after it chose a worker.
func (e *exchange) kept(w *worker.Worker) {
	e.in.Seen.Worker = w.ID()
	e.d.metrics.answeredHere(e)
	e.release()
}

// enter binds the session that a worker's answer opened, or one of ours, and says so in the answer. heard: the worker took the
// opening in.
func (d *Daemon) enter(in *Inbound, c *sagemaker.Call, p *pool, w *worker.Worker, out *Outbound, heard bool) (*Outbound, bool) {
	in.Seen.Worker = w.ID()
	id, expires, minted, bad := sagemaker.Opened(out.get)
	if bad != nil {
		return d.refuseOpening(in, w, bad), false
	}
	if !minted {
		id = session.MintID()
	}
	b, err := p.sessions.Open(in.opened(id), session.Binding{Worker: w.ID(), Minted: minted, Heard: heard, Expires: expires}, time.Now())
	if err != nil {
		return d.refuseOpening(in, w, err), false
	}
	p.crowd.add(w.ID(), 1)
	if out.Body == nil { // vLLM's words
		out.Body = []byte("Session " + id + " created")
		out.set("Content-Type", "text/plain; charset=utf-8")
	}
	out = told(out, in, c)
	out.set(sagemaker.HeaderNewSession, sagemaker.FormatNew(id, b.Expires))
	return out, true
}

func (d *Daemon) refuseOpening(in *Inbound, w *worker.Worker, err error) *Outbound {
	d.log.Warn("a worker opened a session that cannot be kept", "id", in.ID, "pool", in.Seen.Pool, "worker", w.ID(), "error", err)
	return d.refuseCall(in, faultOpening)
}

// closeCall serves CLOSE. The worker that took the opening in hears of it, and its refusal keeps no session that the router holds.
func (d *Daemon) closeCall(ctx context.Context, in *Inbound, c *sagemaker.Call) *Outbound {
	p, status := d.callPool(in, c)
	if p == nil {
		return d.refuseCall(in, faultSession(status))
	}
	in.Seen.Pool = p.name
	name := in.opened(c.Session)
	b, status := p.sessions.Find(name, time.Now())
	if status != session.Found {
		return d.refuseCall(in, faultSession(status))
	}
	out, ok := d.freeSession(ctx, in, c, p, b)
	if !ok {
		return out
	}
	if !p.sessions.Close(name, time.Now()) { // another close was first
		return d.refuseCall(in, faultSession(session.Closed))
	}
	p.crowd.add(b.Worker, -1)
	if out.Status >= 200 && out.Status <= 299 {
		out.set(sagemaker.HeaderClosedSession, c.Session)
	}
	return out
}

// freeSession tells the worker that may hold something of a session to free it. ok is false if that has to be tried again.
func (d *Daemon) freeSession(ctx context.Context, in *Inbound, c *sagemaker.Call, p *pool, b session.Binding) (out *Outbound, ok bool) {
	standing := p.workers.Standing(b.Worker, "", time.Now())
	if b.Minted && standing != worker.Gone && standing != worker.Down {
		asked := *in
		asked.Body, asked.Tail, asked.Left = []byte(`{"requestType":"CLOSE"}`), nil, 0 // CLOSE_SESSION is unknown to vLLM
		return d.forwardClose(ctx, in, &asked, c)
	}
	if b.Heard && standing == worker.Ready {
		asked := *in // with the client's body: what names the payload there is the application's
		if out, ok := d.forwardClose(ctx, in, &asked, c); ok && out.Status >= 200 && out.Status <= 299 {
			return out, true
		}
	}
	in.Seen.Worker = b.Worker
	out = &Outbound{Status: 200, Body: []byte("Session " + c.Session + " closed")}
	out.set("Content-Type", "text/plain; charset=utf-8")
	return told(out, in, c), true
}

// forwardClose sends a CLOSE to the session's worker. ok is false if that worker was not asked, or could not answer.
func (d *Daemon) forwardClose(ctx context.Context, in, asked *Inbound, c *sagemaker.Call) (out *Outbound, ok bool) {
	e := d.begin(asked)
	e.call = c
	out = e.serve(ctx)
	in.Seen = asked.Seen
	if in.Seen.Worker == "" || out.Status == 503 {
		return told(out, in, c), false
	}
	text, _, _ := whole(out, maxTranslated)
	out.Stream, out.Body = nil, text
	return told(out, in, c), true
}
