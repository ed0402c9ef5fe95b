package sessionapi

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/sagemaker"
	"github.com/warmpath/warmpath/daemon/session"
	"github.com/warmpath/warmpath/daemon/worker"
)

// API serves the requests for sessions. It is safe for concurrent use.
type API struct {
	server *exchange.Server
	log    *slog.Logger
	opens  sagemaker.Opens
}

// New makes the API on a server of requests.
func New(server *exchange.Server, log *slog.Logger) *API { return &API{server: server, log: log} }

// Serve answers a request whose endpoint has the role Sessions, Invocations or SageMaker.
func (a *API) Serve(ctx context.Context, in *exchange.Inbound) *exchange.Outbound {
	if in.Endpoint.Role == exchange.Sessions {
		return a.plain(ctx, in)
	}
	call, bad := sagemaker.Read(in.Path, in.Lookup, sagemaker.RequestType(in.Body))
	if bad != nil {
		return a.server.RefuseSession(in, exchange.Fault{Status: bad.Status, Kind: "invalid_request_error", Code: "session_malformed",
			Message: bad.Message})
	}
	switch call.Op {
	case sagemaker.Open:
		return a.open(ctx, in, &call)
	case sagemaker.Close:
		return a.close(ctx, in, &call)
	}
	x := a.server.Begin(in, entry(in, &call))
	out := x.Serve(ctx)
	ended := a.endedAtWorker(in, &call, x, out)
	if ended == session.Lost {
		return a.server.RefuseSession(in, exchange.FaultSession(session.Lost))
	}
	out = translate(out, in, &call)
	if ended == session.Closed {
		out.Set(sagemaker.HeaderClosedSession, call.Session)
	}
	return out
}

// endedAtWorker reads from an answer that a session which the worker holds has ended there, and closes its binding:
// Closed by the request that has just been answered, Lost if the worker knows nothing of it, as after a restart that
// no probe has seen. Found if neither.
func (a *API) endedAtWorker(in *exchange.Inbound, c *sagemaker.Call, x *exchange.Exchange, out *exchange.Outbound) session.Status {
	b, status := x.Binding(), session.Found
	if in.Seen.Worker == "" || !b.Minted || b.Worker != in.Seen.Worker {
		return status
	}
	switch {
	case out.Status == 200 && out.Get(sagemaker.HeaderClosedSession) != "":
		status = session.Closed
	case out.Status == 400 && out.Stream == nil && bytes.Contains(bytes.ToLower(out.Body), []byte("session not found")):
		status = session.Lost
	default:
		return status
	}
	x.Pool().Sessions.Close(in.Opened(c.Session), time.Now())
	return status
}

// keepsSessions tells whether a worker is taken to keep sessions of its own.
func keepsSessions(p *exchange.Pool, w *worker.Worker) bool {
	switch p.WorkerSessions {
	case "on":
		return true
	case "off":
		return false
	}
	return !p.Sessionless(w)
}
