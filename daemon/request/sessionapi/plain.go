package sessionapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/sagemaker"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// Session is what the client that opened a session gets of it. Where it lives is not the client's business.
type Session struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// plain serves sessions as a plain resource.
type plain struct {
	server   *exchange.Server
	openings *openings
	closings *closings
}

// serve answers POST /sessions, which opens a session on a worker that it chooses for the body's model, and GET and
// DELETE /sessions/{id}. The id is then sent as X-Session-Id. The router holds these sessions, and no worker knows of
// them.
func (r *plain) serve(ctx context.Context, in *message.Inbound) *message.Outbound {
	id := in.Endpoint.ID
	switch {
	case id == "" && in.Path == "/sessions" && in.Method == http.MethodPost:
		return r.open(ctx, in)
	case id != "" && (in.Method == http.MethodGet || in.Method == http.MethodDelete):
	default:
		return r.server.RefuseSession(in, message.FaultUnknownURL)
	}
	if !sagemaker.ValidID(id) {
		return r.server.RefuseSession(in, gone(session.Unknown))
	}
	name := in.Opened(id)
	p, status := in.Epoch.Holding(name, time.Now())
	if p == nil {
		return r.server.RefuseSession(in, gone(status))
	}
	in.Seen.Pool = p.Name
	b, status := p.Sessions.Peek(name, time.Now())
	if status != session.Found {
		return r.server.RefuseSession(in, gone(status))
	}
	if in.Method == http.MethodGet {
		return said(200, Session{ID: id, Created: b.Created, Expires: b.Expires})
	}
	call := &sagemaker.Call{Op: sagemaker.Close, Session: id, InBody: true}
	asked := *in
	asked.Endpoint = message.Classify(http.MethodPost, "/invocations")
	asked.Method, asked.Path, asked.Query = http.MethodPost, asked.Endpoint.Path, ""
	asked.Body, asked.Tail, asked.Left = []byte(`{"requestType":"CLOSE"}`), nil, 0
	out, ok := r.closings.free(ctx, &asked, call, held{pool: p, binding: b})
	in.Seen = asked.Seen
	if !ok {
		return out
	}
	if !p.Sessions.Close(name, time.Now()) {
		return r.server.RefuseSession(in, gone(session.Closed))
	}
	return &message.Outbound{Status: http.StatusNoContent}
}

// gone returns the error of a session that is the resource itself.
func gone(s session.Status) message.Fault {
	f := message.FaultSession(s)
	if s != session.Silent {
		f.Status = http.StatusNotFound
	}
	return f
}

// open opens a session on a worker that is chosen for the body's model.
func (r *plain) open(ctx context.Context, in *message.Inbound) *message.Outbound {
	if len(in.Body) > 0 && !json.Valid(in.Body) || in.Tail != nil {
		return r.server.RefuseSession(in, message.FaultSessionBody)
	}
	if out := r.openings.full(in); out != nil {
		return out
	}
	call := &sagemaker.Call{Op: sagemaker.Open, InBody: true}
	x := r.server.Begin(in, entry(in, call))
	if out := x.Choose(ctx); out != nil {
		return out
	}
	p, w := x.Pool(), x.Chosen()
	x.Keep()
	id := session.MintID()
	b, err := p.Sessions.Open(in.Opened(id), session.Binding{Worker: w.ID()}, time.Now())
	if err != nil {
		return r.openings.refuse(in, w, err)
	}
	out := said(http.StatusCreated, Session{ID: id, Created: b.Created, Expires: b.Expires})
	out.Set("Location", "/sessions/"+id)
	return out
}

// said returns an answer with v in JSON. No cache may keep it.
func said(status int, v any) *message.Outbound {
	body, _ := json.Marshal(v)
	out := &message.Outbound{Status: status, Body: body}
	out.Set("Content-Type", "application/json")
	out.Set("Cache-Control", "no-store")
	return out
}
