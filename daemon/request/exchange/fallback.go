package exchange

import (
	"context"
	"net/http"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// A request whose model cannot serve it may go to the fallback of the name that the client sent. It is then chosen and
// sent anew, by an Exchange of its own. That is decided before its refusal is counted, and before the client has a byte.

// HeaderFallback says why another model than the first has answered: down, full or context.
const HeaderFallback = "X-Warmpath-Fallback"

// fallen is in place of the answer to a request that goes to a fallback. No client gets it.
var fallen Outbound

// fallBack serves the request by the fallbacks of its model, until one answers or there is none left. It returns the
// exchange that did, and its answer.
func (s *Server) fallBack(ctx context.Context, e *Exchange) (*Exchange, *Outbound) {
	out := &fallen
	for out == &fallen {
		from, next := e.in.Seen.Model, new(Exchange)
		s.begin(next, e.in, Entry{})
		next.alias, next.fell, next.arrived = e.alias.After(e.falls), e.falls, e.arrived
		out = next.Serve(ctx)
		s.journal.fellBack(e.in, from, e.falls)
		e = next
	}
	return e, out
}

// failedFor returns why the model has not served a request that ends with that fault, 0 if another model would not
// help. own is a worker's own error in its place.
func failedFor(f *Fault, own *ownError) names.Reason {
	switch {
	case own != nil && f.Cause == NoFreeWorker: // each worker says so itself
		return names.Full
	case own != nil:
		return 0
	}
	switch f.Code {
	case FaultNoWorker.Code, FaultUpstream.Code, FaultDown.Code:
		return names.Down
	case FaultFull.Code, FaultQueueFull.Code, FaultWaited.Code:
		return names.Full
	}
	return 0
}

// fallsBack reports whether the request goes to a fallback for that reason, and has it go there. What a worker keeps
// for its client is at that worker alone: a request for that goes nowhere else.
func (r *request) fallsBack(why names.Reason) bool {
	if r.falls != 0 {
		return true
	}
	if r.alias.After(why) == nil || r.entry.Door != nil || r.entry.Op != Use || r.entry.Session != "" ||
		r.consumed() || r.in.Endpoint.Adapters || r.responses() != [2]string{} {
		return false
	}
	b := r.choice.Binding()
	if b.Worker != "" && (b.Kind != session.Key || why == names.Full) { // the session waits for its own worker alone
		return false
	}
	r.falls = why
	return true
}

// outgrewModel ends an attempt whose worker refuses the request for its length, if a fallback is to serve it.
func outgrewModel(b *body, text []byte) *failure {
	if b.r.alias == nil || b.a.resp.Status != http.StatusBadRequest {
		return nil
	}
	if _, ok := saysTooLong(text); !ok || !b.r.fallsBack(names.Context) {
		return nil
	}
	return b.discard(worker.Outcome{Kind: worker.Answered, Rejected: true},
		&failure{reason: reasonTooShort, fault: FaultUpstream, grade: route.GradeFinal})
}

// noteEnd logs the end of the attempts, as end does for a client that gets an error.
func (e *Exchange) noteEnd(last step, end func(*Inbound, *Pool, step, int)) {
	a := &e.sending.attempts
	switch {
	case !e.fallsBack(failedFor(&a.last, a.own)):
		end(e.in, e.pool, last, len(e.choice.Tried()))
	case last.reason != reasonNone:
		e.journal.unanswered(e.in, last)
	}
}
