package exchange

import (
	"context"
	"log/slog"
	"time"

	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/catalogue"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
)

// Config is what a Server needs of its process.
type Config struct {
	Log    *slog.Logger
	Meter  journal.Meter
	Keeper journal.Keeper // nil = none
}

// Server serves requests, each under the epoch that it brings. It is safe for concurrent use.
type Server struct {
	journal *journal.Journal
	lethal  *admission.Lethal
	kept    admission.Kept
	models  catalogue.Catalogue
}

// New makes a server.
func New(c Config) *Server {
	return &Server{journal: journal.New(c.Log, c.Meter, c.Keeper), lethal: admission.NewLethal()}
}

// Serve answers a plain request, in memory that the answer's Release gives back. It never fails: an error is an answer
// in the endpoint's shape. If ctx ends, so does the request at the worker. ctx should be a [Life].
func (s *Server) Serve(ctx context.Context, in *message.Inbound) *message.Outbound {
	switch in.Endpoint.Role {
	case message.Malformed:
		f := message.FaultPath(in.Path)
		in.Seen.End = f.Code
		return f.Outbound(in.Endpoint.Shape)
	case message.Models:
		return s.models.List(in)
	case message.Model:
		return s.models.Describe(ctx, in)
	}
	e := exchanges.Get().(*Exchange)
	s.begin(e, in, message.Entry{})
	out := e.Serve(ctx)
	if out == &fallen {
		e, out = s.fallBack(ctx, e)
	}
	out.Memory = e
	return out
}

// Overflow returns the bytes of bodies that are kept now.
func (s *Server) Overflow() int64 { return s.kept.Overflow.Taken() }

// RefuseSession answers an error about a session before a pool is chosen. It writes a log line, a counter, and the
// error in the path's shape.
func (s *Server) RefuseSession(in *message.Inbound, f message.Fault) *message.Outbound {
	s.journal.RefusedSession(in, in.Seen.Pool, f.Code)
	in.Seen.End = f.Code
	return f.Outbound(in.Endpoint.Shape)
}

// Begin makes the exchange that serves a request.
func (s *Server) Begin(in *message.Inbound, entry message.Entry) *Exchange {
	e := new(Exchange)
	s.begin(e, in, entry)
	return e
}

// begin fills in an exchange, field by field: a literal would be made on the stack and copied.
func (s *Server) begin(e *Exchange, in *message.Inbound, entry message.Entry) {
	e.req.Journal = s.journal
	e.req.Lethal = s.lethal
	e.req.Kept = &s.kept
	e.req.In = in
	e.req.Epoch = in.Epoch
	e.req.Entry = entry
	e.req.ID = message.IDAtWorker(in)
	e.req.Arrived = time.Now()
}

// fallBack serves the request by the fallbacks of its model, until one answers or there is none left. It returns the
// exchange that did, and its answer.
func (s *Server) fallBack(ctx context.Context, e *Exchange) (*Exchange, *message.Outbound) {
	out := &fallen
	for out == &fallen {
		from, next := e.req.In.Seen.Model, new(Exchange)
		s.begin(next, e.req.In, message.Entry{})
		next.req.Alias, next.req.Fell, next.req.Arrived = e.req.Alias.After(e.falls), e.falls, e.req.Arrived
		next.req.Place = e.req.Place // it has waited
		out = next.Serve(ctx)
		s.journal.FellBack(e.req.In, from, e.falls)
		e = next
	}
	return e, out
}
