package sessionapi

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/warmpath/warmpath/cache/parts/seldom"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/sagemaker"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// maxOpening bounds the answer to an opening, which is held whole: a sentence and some header fields.
const maxOpening = 256 << 10

// openings opens sessions.
type openings struct {
	server *exchange.Server
	log    *slog.Logger
	calls  sagemaker.Opens // under way, and those that have just ended
	warned seldom.Line     // of a full share
}

// serve answers NEW_SESSION. Attempts of one call, which SDKs repeat when an answer is late, open one session.
func (o *openings) serve(ctx context.Context, in *message.Inbound, c *sagemaker.Call) *message.Outbound {
	id := ""
	if c.InvocationID != "" {
		id = in.Caller.Name + "\x00" + c.Endpoint + "\x00" + c.InvocationID
	}
	r, _, err := o.calls.Do(ctx, id, func() sagemaker.Result {
		out, ok := o.attempt(ctx, in, c)
		r := sagemaker.Result{OK: ok, Status: out.Status, Body: out.Body}
		for _, f := range out.Header {
			r.Header = append(r.Header, [2]string{f.Name, f.Value})
		}
		return r
	})
	if err != nil {
		f := message.FaultStopping
		if errors.Is(err, message.ErrClientGone) {
			f = message.FaultGone
		}
		return f.Outbound(in.Endpoint.Shape)
	}
	out := &message.Outbound{Status: r.Status, Body: r.Body}
	for _, h := range r.Header {
		out.Header = append(out.Header, upstream.Field{Name: h[0], Value: h[1]})
	}
	return out
}

// attempt asks a worker to open a session, or opens one that the router alone holds, and reports whether a session
// was opened.
func (o *openings) attempt(ctx context.Context, in *message.Inbound, c *sagemaker.Call) (
	out *message.Outbound, ok bool) {
	if out := o.full(in); out != nil {
		return out, false
	}
	x := o.server.Begin(in, entry(in, c))
	if out := x.Choose(ctx); out != nil {
		return out, false
	}
	p, w := x.Pool(), x.Chosen()
	if c.InBody && !keepsSessions(p, w) {
		x.Keep()
		return o.enter(in, c, opened{pool: p, worker: w, answer: &message.Outbound{Status: 200}})
	}
	out = x.Send(ctx)
	w = x.By()
	if w == nil {
		return out, false
	}
	text, cut, err := out.Whole(maxOpening)
	switch {
	case err != nil || cut:
		o.log.Warn("the answer to an opening broke off or is too long", "id", in.ID, "pool", p.Name, "worker", w.ID(),
			"bytes", len(text), "error", err)
		return o.server.RefuseSession(in, message.FaultOpening), false
	case c.InBody && knowsNoSessions(out.Status, text) && p.WorkerSessions == "auto":
		p.NoteSessionless(w)
		return o.enter(in, c, opened{pool: p, worker: w, answer: &message.Outbound{Status: 200}})
	case out.Status < 200 || out.Status > 299:
		o.server.RefuseSession(in, message.FaultOpening)
		return translate(&message.Outbound{Status: out.Status, Header: out.Header, Body: text}, in, c), false
	}
	return o.enter(in, c, opened{pool: p, worker: w, heard: true,
		answer: &message.Outbound{Status: out.Status, Header: out.Header, Body: text}})
}

// knowsNoSessions reports that a worker keeps no sessions, from its answer to a body with NEW_SESSION. It knows vLLM's
// answer where they are switched off, and that of releases which look for a prompt in the body.
func knowsNoSessions(status int, body []byte) bool {
	text := string(body[:min(len(body), 4096)])
	return status == 404 || status == 405 || status == 422 ||
		status == 400 && (strings.Contains(text, "not enabled") || strings.Contains(text, "suitable handler"))
}

// opened is a session that a worker has agreed to, or that the router alone holds.
type opened struct {
	pool   *epoch.Pool
	worker *worker.Worker
	answer *message.Outbound
	heard  bool // the worker took the opening in
}

// enter binds an opened session and adds its id to the answer.
func (o *openings) enter(in *message.Inbound, c *sagemaker.Call, s opened) (*message.Outbound, bool) {
	in.Seen.Worker = s.worker.ID()
	id, expires, minted, bad := sagemaker.Opened(s.answer.Get)
	if bad != nil {
		return o.refuse(in, s.worker, bad), false
	}
	if !minted {
		id = session.MintID()
	}
	b, err := s.pool.Sessions.Open(in.Opened(id), session.Binding{Worker: s.worker.ID(), Minted: minted, Heard: s.heard,
		Expires: expires}, time.Now())
	if err != nil {
		return o.refuse(in, s.worker, err), false
	}
	out := s.answer
	if out.Body == nil { // the text is vLLM's
		out.Body = []byte("Session " + id + " created")
		out.Set("Content-Type", "text/plain; charset=utf-8")
	}
	out = translate(out, in, c)
	out.Set(sagemaker.HeaderNewSession, sagemaker.FormatNew(id, b.Expires))
	return out, true
}

// full refuses an opening, before a worker is asked, if the open sessions of its key take all of the key's share.
func (o *openings) full(in *message.Inbound) *message.Outbound {
	pools := in.Epoch.Pools
	if len(pools) == 0 || !pools[0].Sessions.Full(in.Opened(session.MintID())) { // all pools share one store
		return nil
	}
	return o.refuseFull(in)
}

func (o *openings) refuseFull(in *message.Inbound) *message.Outbound {
	if o.warned.Due(time.Now(), time.Minute) {
		o.log.Warn("an opening is refused: the open sessions of its key take all of the key's share of memory; "+
			"raise cache.max_bytes, or let sessions end sooner (sessions.life)", "id", in.ID, "key", in.Caller.Name)
	}
	return o.server.RefuseSession(in, message.FaultSessionsFull)
}

// refuse logs that the router cannot keep a session which a worker has opened, and returns the answer to the client.
func (o *openings) refuse(in *message.Inbound, w *worker.Worker, err error) *message.Outbound {
	if errors.Is(err, session.ErrFull) {
		return o.refuseFull(in)
	}
	o.log.Warn("a worker opened a session that cannot be kept", "id", in.ID, "pool", in.Seen.Pool,
		"worker", w.ID(), "error", err)
	return o.server.RefuseSession(in, message.FaultOpening)
}

// keepsSessions reports whether a worker is taken to keep sessions of its own.
func keepsSessions(p *epoch.Pool, w *worker.Worker) bool {
	switch p.WorkerSessions {
	case "on":
		return true
	case "off":
		return false
	}
	return !p.Sessionless(w)
}
