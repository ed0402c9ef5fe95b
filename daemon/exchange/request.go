package exchange

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/route"
	"github.com/warmpath/warmpath/daemon/session"
)

// request is what is known of a request between its arrival and the end of its answer. It is used by one goroutine at a
// time: the handler's until the response head, then the one that reads the answer.
type request struct {
	server  *Server
	in      *Inbound
	epoch   *Epoch
	entry   Entry
	arrived time.Time

	pool    *Pool
	read    reading
	choice  route.Choice
	chosen  bool // the strategy has been asked
	headers headers
	cookie  string // the one to set, if the answer is a success
}

// log is the pool's lines, with its name.
func (r *request) log() *slog.Logger {
	if r.pool == nil {
		return r.server.log
	}
	return r.server.log.With("pool", r.pool.Name)
}

// shape is how the endpoint's errors look.
func (r *request) shape() Shape { return r.in.Endpoint.Shape }

// poolName is the name of the pool, or "" if none has been chosen.
func (r *request) poolName() string {
	if r.pool == nil {
		return ""
	}
	return r.pool.Name
}

// refuse answers with an error of the router's own.
func (r *request) refuse(f Fault) *Outbound {
	seen := &r.in.Seen
	r.choice.Unbind()
	out := f.Outbound(r.shape())
	r.server.meter.Refused(seen, f.Code, out.Status, time.Since(r.arrived))
	if strings.HasPrefix(f.Code, "session_") {
		r.server.meter.SessionRefused(r.poolName(), f.Code)
		r.server.log.Info("session refused", "id", r.in.ID, "pool", r.poolName(), "reason", f.Code, "path", gate.Cut(r.in.Path),
			"session", session.Fingerprint(r.choice.Session()))
	}
	seen.End = f.Code
	r.explain(out)
	return out
}

// abandoned ends a request whose client has left, or that outlived the drain.
func (r *request) abandoned(ctx context.Context) *Outbound {
	if !errors.Is(context.Cause(ctx), ErrClientGone) {
		return r.refuse(FaultStopping)
	}
	r.in.Seen.End = "client_gone"
	r.server.meter.Refused(&r.in.Seen, FaultGone.Code, FaultGone.Status, time.Since(r.arrived))
	return FaultGone.Outbound(r.shape()) // nobody reads it
}

// consumed tells whether part of the body may be gone with a failed attempt.
func (r *request) consumed() bool { return r.in.Tail != nil && r.in.Tail.Passed() }

// release gives the pooled parts back. The body's reading may not be used after it.
func (r *request) release() {
	r.read.release()
	r.choice.Release()
}

// Why a request ends before its answer does. They are the causes of its [Life].
var (
	ErrClientGone = errors.New("the client left")
	ErrDraining   = errors.New("the router is stopping")
)

// How a body can fail that the client sends. Inbound.Tail gives them.
var (
	ErrTooLarge = errors.New("the body is over server.max_body_bytes")
	ErrSlowBody = errors.New("the body did not arrive within server.read_timeout")
)

// causeOf is why the request was ended from our side, or nil.
func causeOf(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// endsStreams tells that the door tells of a broken stream itself.
func (r *request) endsStreams() bool { return r.entry.Door != nil && r.entry.Door.EndsStreams() }
