package exchange

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Pairing has the prompts of a pool computed by workers of their own.
type Pairing struct {
	Connector pair.Connector
	Threshold int // tokens that the decoder lacks; with fewer it computes them itself
	Bootstrap int // the port of a prefiller's bootstrap server

	Prefillers worker.Fence // who computes prompts
	Decoders   worker.Fence // who answers clients
}

// Prefilled is what became of the prefill of a request at a worker of its own, in metrics.
type Prefilled string

// What may become of it. After PrefillNone, PrefillFailed and PrefillUnnamed the worker that answers computes the
// prompt itself.
const (
	PrefillDone    Prefilled = "done"
	PrefillNone    Prefilled = "no_prefiller"  // that is up and has room
	PrefillFailed  Prefilled = "failed"        // the prefillers that were asked gave no answer
	PrefillUnnamed Prefilled = "no_parameters" // the prefiller does not say where the KV is
	PrefillFreed   Prefilled = "freed"         // the client left, and a decoder had the prefiller free its memory
	PrefillPinned  Prefilled = "pinned"        // the client left, and the prefiller keeps the memory until it gives up
)

// fence returns the labels of the workers that alone may get the request.
func (r *request) fence() worker.Fence {
	fence := worker.Fence(r.in.Caller.Workers)
	if r.pool == nil || r.pool.Pairing == nil {
		return fence
	}
	roles := r.pool.Pairing.Decoders
	if r.entry.Op == Prefilling {
		roles = r.pool.Pairing.Prefillers
	}
	return append(append(make(worker.Fence, 0, len(fence)+len(roles)), fence...), roles...)
}

// pairing is the prefill of one request, while a worker is found that answers it. A nil pairing leaves all to one
// worker.
type pairing struct {
	pair.Transfer
	rule   *Pairing
	body   []byte // of the request at a worker that does both
	handed []byte // where a prefiller keeps the KV, if no decoder has been told; nil = nowhere
	told   []byte // likewise, and the decoder that has the request has been told
	first  *leg   // that handed is of

	decoder string // the URL of the last one
	given   bool   // up: no prefiller is asked any more
	beside  *leg   // runs beside the second one; nil = none does
}

// pairs returns the pairing of a request, nil if it has none. Either way the client names no prefiller to a worker.
func (e *Exchange) pairs(s *sending) *pairing {
	rule := e.pool.Pairing
	if rule == nil || e.entry.Op != Use || e.in.Tail != nil || e.in.Kept != nil || e.in.Method != http.MethodPost {
		return nil
	}
	s.Body = pair.Alone(s.Body)
	if !e.generates() || !e.read.req.HasPrompt || !e.read.clear {
		return nil
	}
	return &pairing{rule: rule, body: s.Body, Transfer: pair.Transfer{Connector: rule.Connector, Kind: e.read.req.Kind,
		ID: e.id, Bootstrap: rule.Bootstrap}}
}

// splits reports whether another worker than the one that is to answer computes the prompt.
func (p *pairing) splits(e *Exchange, to route.Target) bool {
	return p != nil && !p.given && (p.handed != nil || route.Lacking(&e.choice, to) >= p.rule.Threshold)
}

// prefill has a prefiller compute the prompt, and makes the request that of the second leg. If none does, the decoder
// gets the client's.
func (p *pairing) prefill(ctx context.Context, e *Exchange, a *attempt) {
	p.decoder = a.trip.Worker().URL()
	if p.handed == nil {
		l := newLeg(e, p)
		began := false
		switch {
		case p.Connector == pair.Sidecar:
			began = p.tell(ctx, e, l)
		case p.Connector.AtOnce():
			began = p.sendBeside(ctx, e, a, l)
		default:
			began = p.sendBefore(ctx, e, l)
		}
		if !began {
			p.given = true
			return
		}
	}
	e.sending.Body = p.Decode(p.body, p.handed)
	p.handed, p.told = nil, p.handed // a decoder that has been told may have read it
}

// untold takes back that a decoder was told where the KV is: the client left before the decoder's first byte, or the
// decoder got nothing. Who reads it a second time finds it gone, and does no harm.
func (p *pairing) untold() {
	if p != nil {
		p.handed, p.told = p.told, nil
	}
}

// free has the prefiller free what no decoder has read.
func (p *pairing) free(e *Exchange) {
	if p == nil || p.handed == nil {
		return
	}
	l, handed, pool, j := p.first, p.handed, e.pool, e.journal
	to := pool.Clients.Get(p.decoder)
	go func() { j.prefilled(&l.in, pool, l.free(to, pool, handed)) }()
}

// sendBefore runs the first leg to its end, and reports whether it was of use. It goes on to its end if the client
// leaves: nobody could tell whether the prefiller keeps memory for it.
func (p *pairing) sendBefore(ctx context.Context, e *Exchange, l *leg) bool {
	done, gone := make(chan []byte), make(chan struct{})
	to, pool, j := e.pool.Clients.Get(p.decoder), e.pool, e.journal
	go func() {
		defer l.end()
		handed := l.run()
		select {
		case done <- handed:
		case <-gone:
			j.prefilled(&l.in, pool, l.free(to, pool, handed))
		}
	}()
	select {
	case p.handed = <-done:
		p.first = l
		p.note(e, l)
		return l.result == PrefillDone
	case <-ctx.Done():
		close(gone)
		return false
	}
}

// sendBeside chooses a prefiller and runs the first leg beside the second. If it fails, the second waits in vain, and
// is ended.
func (p *pairing) sendBeside(ctx context.Context, e *Exchange, a *attempt, l *leg) bool {
	if !l.choose(ctx) || !p.meet(ctx, l) {
		l.end()
		p.note(e, l)
		return false
	}
	l.in.Body = p.Prefill(e.in.Body)
	a.paired = true
	e.in.Seen.Split = l.report()
	pool, j := e.pool, e.journal
	go func() {
		defer l.end()
		l.send()
		j.prefilled(&l.in, pool, l.result)
		if l.result != PrefillDone && a.deadline.CompareAndSwap(deadlineAhead, deadlineMissed) {
			a.cancel(errUnfilled)
		}
	}()
	return true
}

// errUnfilled ends an attempt at a decoder that waits for a prefill which has failed.
var errUnfilled = errors.New("the prefiller failed, and the decoder waits for it")

// meet sets where the two workers meet, and reports whether that is known.
func (p *pairing) meet(ctx context.Context, l *leg) bool {
	u, err := url.Parse(l.Chosen().URL())
	if err != nil {
		return false
	}
	p.Host = u.Hostname()
	if p.Connector == pair.SGLang {
		p.Room = rand.Uint64()
		return true
	}
	p.Engine = l.engine(ctx, p.rule, p.Host)
	if p.Engine == "" {
		l.result = PrefillUnnamed
	}
	return p.Engine != ""
}

// tell names a prefiller to the sidecar of the decoder.
func (p *pairing) tell(ctx context.Context, e *Exchange, l *leg) bool {
	defer p.note(e, l)
	if !l.choose(ctx) || !l.hold() {
		l.end()
		return false
	}
	p.beside = l
	e.sending.Header = withPrefiller(e.sending.Header, l.address())
	return true
}

// withPrefiller adds the field that names a prefiller to a sidecar. The field of the rank stays the last one.
func withPrefiller(header []upstream.Field, address string) []upstream.Field {
	return slices.Insert(header, 0, upstream.Field{Name: pair.HeaderPrefiller, Value: address})
}

// reset makes the request that of a worker which does both, whatever an attempt before has made of it.
func (p *pairing) reset(s *sending) {
	if p == nil {
		return
	}
	s.Body = p.body
	if len(s.Header) > 0 && s.Header[0].Name == pair.HeaderPrefiller {
		s.Header = s.Header[1:]
	}
}

// stop has the next worker compute the prompt itself if a prefill has failed.
func (p *pairing) stop(why *failure) {
	if p != nil && why.reason == reasonUnfilled {
		p.given = true
	}
}

// end ends what a sidecar has a prefiller do, once the second leg has given its answer or has failed.
func (p *pairing) end() {
	if p.beside != nil {
		p.beside.letGo()
		p.beside.end()
		p.beside = nil
	}
}

// note records what became of the first leg.
func (p *pairing) note(e *Exchange, l *leg) {
	e.in.Seen.Split = l.report()
	e.journal.prefilled(e.in, e.pool, l.result)
}
