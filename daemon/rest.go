package daemon

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/sagemaker"
	"github.com/warmpath/warmpath/daemon/session"
)

// Session is what a client is told of a session that it opened. Where it lives is not its business.
type Session struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// sessionsPath tells of the plain twin of SageMaker's sessions, and the id that the path names.
func sessionsPath(path string) (id string, ok bool) {
	if path == "/sessions" {
		return "", true
	}
	return strings.CutPrefix(path, "/sessions/")
}

// sessions serves POST /sessions, which opens one on a worker that it chooses for the body's model, and GET and DELETE
// /sessions/{id}. The id is then sent as X-Session-Id. The router holds these sessions: no worker hears of them.
func (d *Daemon) sessions(ctx context.Context, in *Inbound, id string) *Outbound {
	switch {
	case id == "" && in.Path == "/sessions" && in.Method == http.MethodPost:
		return d.openPlain(ctx, in)
	case id != "" && (in.Method == http.MethodGet || in.Method == http.MethodDelete):
	default:
		return d.refuseCall(in, faultUnknownURL)
	}
	if !sagemaker.ValidID(id) {
		return d.refuseCall(in, gone(session.Unknown))
	}
	p, status := d.callPool(in, &sagemaker.Call{Session: id})
	if p == nil {
		return d.refuseCall(in, gone(status))
	}
	in.Seen.Pool = p.name
	name := in.opened(id)
	b, status := p.sessions.Peek(name, time.Now())
	if status != session.Found {
		return d.refuseCall(in, gone(status))
	}
	if in.Method == http.MethodGet {
		return said(200, Session{id, b.Created, b.Expires})
	}
	call := &sagemaker.Call{Op: sagemaker.Close, Session: id, InBody: true}
	asked := *in
	asked.Method, asked.Path, asked.Query = http.MethodPost, invocations, ""
	asked.Body, asked.Tail, asked.Left = []byte(`{"requestType":"CLOSE"}`), nil, 0
	out, ok := d.freeSession(ctx, &asked, call, p, b)
	in.Seen = asked.Seen
	if !ok {
		return out
	}
	if !p.sessions.Close(name, time.Now()) {
		return d.refuseCall(in, gone(session.Closed))
	}
	p.crowd.add(b.Worker, -1)
	return &Outbound{Status: http.StatusNoContent}
}

// gone is the fault of a session that is the resource itself.
func gone(s session.Status) fault {
	f := faultSession(s)
	if s != session.Silent {
		f.status = http.StatusNotFound
	}
	return f
}

func (d *Daemon) openPlain(ctx context.Context, in *Inbound) *Outbound {
	if len(in.Body) > 0 && !json.Valid(in.Body) || in.Tail != nil {
		return d.refuseCall(in, faultSessionBody)
	}
	e := d.begin(in)
	e.call = &sagemaker.Call{Op: sagemaker.Open, InBody: true}
	if out := e.route(ctx); out != nil {
		e.release()
		return out
	}
	p, w := e.pool, e.view.workers[e.result.Row]
	e.kept(w)
	id := session.MintID()
	b, err := p.sessions.Open(in.opened(id), session.Binding{Worker: w.ID()}, time.Now())
	if err != nil {
		return d.refuseOpening(in, w, err)
	}
	p.crowd.add(w.ID(), 1)
	out := said(http.StatusCreated, Session{id, b.Created, b.Expires})
	out.set("Location", "/sessions/"+id)
	return out
}

// said is an answer in JSON.
func said(status int, v any) *Outbound {
	body, _ := json.Marshal(v)
	out := &Outbound{Status: status, Body: body}
	out.set("Content-Type", "application/json")
	out.set("Cache-Control", "no-store")
	return out
}
