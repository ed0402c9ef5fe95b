package sessionapi

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/sagemaker"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// closings closes sessions.
type closings struct{ server *exchange.Server }

// serve answers CLOSE. The worker that took the opening in gets it too. That worker's refusal keeps no session that
// the router holds.
func (s *closings) serve(ctx context.Context, in *message.Inbound, c *sagemaker.Call) *message.Outbound {
	name := in.Opened(c.Session)
	p, status := in.Epoch.Named(c.Endpoint), session.Found
	if p == nil {
		p, status = in.Epoch.Holding(name, time.Now())
	}
	if p == nil {
		return s.server.RefuseSession(in, message.FaultSession(status))
	}
	in.Seen.Pool = p.Name
	b, status := p.Sessions.Find(name, time.Now())
	if status != session.Found {
		return s.server.RefuseSession(in, message.FaultSession(status))
	}
	out, ok := s.free(ctx, in, c, held{pool: p, binding: b})
	if !ok {
		return out
	}
	if !p.Sessions.Close(name, time.Now()) { // another close was first
		return s.server.RefuseSession(in, message.FaultSession(session.Closed))
	}
	if out.Status >= 200 && out.Status <= 299 {
		out.Set(sagemaker.HeaderClosedSession, c.Session)
	}
	return out
}

// held is a session that is to be closed.
type held struct {
	pool    *epoch.Pool
	binding session.Binding
}

// free asks the worker that may hold something of a session to free it. ok is false if that has to be tried
// again.
func (s *closings) free(ctx context.Context, in *message.Inbound, c *sagemaker.Call, h held) (
	out *message.Outbound, ok bool) {
	b := &h.binding
	standing := h.pool.Workers.Standing(b.Worker, "", in.Caller.Workers, time.Now())
	if b.Minted && standing != worker.Gone && standing != worker.Down {
		asked := *in
		asked.Body, asked.Tail, asked.Left = []byte(`{"requestType":"CLOSE"}`), nil, 0 // CLOSE_SESSION is unknown to vLLM
		return s.forward(ctx, in, &asked, c)
	}
	if b.Heard && standing == worker.Ready {
		asked := *in // with the client's body: what names the payload there is the application's
		if out, ok := s.forward(ctx, in, &asked, c); ok && out.Status >= 200 && out.Status <= 299 {
			return out, true
		}
	}
	in.Seen.Worker = b.Worker
	out = &message.Outbound{Status: 200, Body: []byte("Session " + c.Session + " closed")}
	out.Set("Content-Type", "text/plain; charset=utf-8")
	return translate(out, in, c), true
}

// forward sends a CLOSE to the session's worker. ok is false if that worker was not asked, or could not answer.
func (s *closings) forward(ctx context.Context, in, asked *message.Inbound, c *sagemaker.Call) (
	out *message.Outbound, ok bool) {
	out = s.server.Begin(asked, entry(asked, c)).Serve(ctx)
	in.Seen = asked.Seen
	if in.Seen.Worker == "" || out.Status == 503 {
		return translate(out, in, c), false
	}
	text, _, _ := out.Whole(maxTranslated)
	out.Stream, out.Body = nil, text
	return translate(out, in, c), true
}
