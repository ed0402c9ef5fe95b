package sessionapi

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/sagemaker"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// API serves the requests for sessions. It is safe for concurrent use.
type API struct {
	server   *exchange.Server
	openings openings
	closings closings
	plain    plain
}

// New makes the API on a server of requests.
func New(server *exchange.Server, log *slog.Logger) *API {
	a := &API{server: server, openings: openings{server: server, log: log}, closings: closings{server: server}}
	a.plain = plain{server: server, openings: &a.openings, closings: &a.closings}
	return a
}

// Serve answers a request whose endpoint has the role Sessions, Invocations or SageMaker.
func (a *API) Serve(ctx context.Context, in *message.Inbound) *message.Outbound {
	if in.Endpoint.Role == message.Sessions {
		return a.plain.serve(ctx, in)
	}
	call, bad := sagemaker.Read(in.Path, in.Lookup, sagemaker.RequestType(in.Body))
	if bad != nil {
		return a.server.RefuseSession(in, message.Fault{Status: bad.Status, Kind: "invalid_request_error",
			Code: "session_malformed", Message: bad.Message})
	}
	if call.Endpoint != "" && in.Epoch.Named(call.Endpoint) == nil { // the body's model would be another endpoint's
		f := unknownEndpoint(call.Endpoint)
		in.Seen.End = f.Code
		return f.Outbound(in.Endpoint.Shape)
	}
	switch call.Op {
	case sagemaker.Open:
		return a.openings.serve(ctx, in, &call)
	case sagemaker.Close:
		return a.closings.serve(ctx, in, &call)
	}
	x := a.server.Begin(in, entry(in, &call))
	out := x.Serve(ctx)
	ended := endedAtWorker(in, x.Binding(), out)
	if ended != session.Found {
		x.Pool().Sessions.Close(in.Opened(call.Session), time.Now())
	}
	if ended == session.Lost {
		return a.server.RefuseSession(in, message.FaultSession(session.Lost))
	}
	out = translate(out, in, &call)
	if ended == session.Closed {
		out.Set(sagemaker.HeaderClosedSession, call.Session)
	}
	return out
}

// unknownEndpoint returns the answer to an endpoint's name that no pool has, in AWS's words.
func unknownEndpoint(name string) message.Fault {
	return message.Fault{Status: http.StatusBadRequest, Kind: "invalid_request_error", Code: "endpoint_not_found",
		Message: "Endpoint " + name + " not found."}
}

// endedAtWorker returns Closed if an answer shows that this request closed the session which its worker holds, Lost if
// the worker knows nothing of it, as after a restart that no probe has seen, and Found otherwise.
func endedAtWorker(in *message.Inbound, b session.Binding, out *message.Outbound) session.Status {
	if in.Seen.Worker == "" || !b.Minted || b.Worker != in.Seen.Worker {
		return session.Found
	}
	switch {
	case out.Status == 200 && out.Get(sagemaker.HeaderClosedSession) != "":
		return session.Closed
	case out.Status == 400 && out.Stream == nil && bytes.Contains(bytes.ToLower(out.Body), []byte("session not found")):
		return session.Lost
	}
	return session.Found
}
