package worker

import (
	"math"
	"sync/atomic"
	"time"
)

// Dispatch says what is sent to a worker.
type Dispatch struct {
	PromptTokens int
	CachedTokens int     // of them, believed in the worker's cache
	Est          float64 // P/m: seconds of prefill on a worker of slowness 1; 0 = Estimate(PromptTokens, CachedTokens)
	Whole        bool    // the answer comes in one piece (not a stream): its first byte does not tell when prefill ended
	Bound        bool    // the worker has the request's session: it may be draining
	Holder       Holder  // is told if the worker went down with the request; nil = waits on
}

// Kind is how an exchange with a worker ended.
type Kind uint8

// The kinds of Outcome. The zero value says nothing against the worker, so that a deferred End may pass it.
const (
	Canceled Kind = iota // the client left, or nothing can be said
	Answered             // the worker answered, and be it with a 4xx
	Failed               // 5xx, or a failure hidden in a 200
	Broken               // the connection broke or timed out
	Refused              // nothing listens there
	Leaving              // its answer told that it is going: finish_reason "abort", a bare [DONE]
)

// Outcome is what a ticket ends with.
type Outcome struct {
	Kind   Kind
	Tokens int    // generated, if known: for TPOT
	Err    string // what went wrong, for the page; no URLs, no prompts
}

// Ticket is one request sent to a worker, until it ends. Its methods may be called in any order, from any goroutine,
// and after the worker was removed.
type Ticket struct {
	pool   *Pool
	worker *Worker
	at     float64
	est    float64
	tokens int
	cached int
	whole  bool
	holder Holder
	flow   atomic.Int64 // of the last byte of the answer, as Worker.flow

	// Guarded by the pool's lock.
	prev, next   *Ticket // the worker's queue
	queued       bool
	older, newer *Ticket // the worker's flight
	first        float64 // when the first byte came, if seen
	seen         bool
	ended        bool
}

// TryBegin counts a request that is about to be sent to w, if w still takes requests. If not (another request got its
// last free place or is its trial, or it went down since the snapshot) the caller goes on to its next choice; if none
// is left, the Standing of a new Snapshot says what to answer. A worker that was removed since takes what was meant for
// it. Every ticket must be ended.
func (p *Pool) TryBegin(w *Worker, d Dispatch, now time.Time) (*Ticket, bool) {
	t := p.ticket(w, d, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch limit := p.conf().MaxInFlight; {
	case limit > 0 && w.inFlight >= limit:
		return nil, false
	case w.gone, w.panicked:
	case d.Bound && w.keeps(t.at):
	case !w.takes(t.at):
		return nil, false
	}
	p.begin(t)
	return t, true
}

func (p *Pool) ticket(w *Worker, d Dispatch, now time.Time) *Ticket {
	t := &Ticket{pool: p, worker: w, at: p.sec(now), est: d.Est, tokens: d.PromptTokens, cached: d.CachedTokens, whole: d.Whole, holder: d.Holder}
	if t.est <= 0 {
		t.est = p.Estimate(d.PromptTokens, d.CachedTokens)
	}
	return t
}

// begin counts t. The caller holds p.mu.
func (p *Pool) begin(t *Ticket) {
	w := t.worker
	p.age(t.at)
	p.settle(w, t.at)
	forward := math.Exp((t.at - p.aged) / window)
	p.sent += forward
	p.begun++
	p.dispatched.note(t.at)
	w.load += forward * t.est * p.fleet * w.rel
	w.lately += forward
	w.inFlight++
	w.sent++
	w.slow.spent()
	if b := &w.breaker; b.cause != none && b.lets(t.at) {
		b.trial = t
	}
	w.queue.push(t)
	w.flight.push(t)
}

// Worker is where the request was sent.
func (t *Ticket) Worker() *Worker { return t.worker }

// FirstByte notes the first byte of an answer that the model made. For an error call End alone: its time says nothing
// of prefill.
func (t *Ticket) FirstByte(now time.Time) {
	p, w, at := t.pool, t.worker, t.pool.sec(now)
	t.Flow(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.seen || t.ended {
		return
	}
	t.seen, t.first = true, at
	p.settle(w, at)
	w.queue.first(t, at)
	if !t.whole {
		w.ttft.add(max(0, at-t.at))
	}
}

// Flow notes that bytes of the answer came. It costs two atomic stores: call it for each chunk.
func (t *Ticket) Flow(now time.Time) {
	at := int64(now.Sub(t.pool.began)) // not the time of day, which may jump
	t.flow.Store(at)
	t.worker.flow.Store(at)
}

// End counts the request down. Only the first call does anything.
func (t *Ticket) End(now time.Time, o Outcome) {
	p, w, at := t.pool, t.worker, t.pool.sec(now)
	if o.Kind == Answered {
		t.Flow(now)
	}
	p.mu.Lock()
	if t.ended {
		p.mu.Unlock()
		return
	}
	t.ended = true
	w.inFlight--
	w.queue.remove(t)
	w.flight.remove(t)
	if o.Kind == Answered && t.seen && !t.whole && o.Tokens > 1 {
		w.tpot.add(max(0, at-t.first) / float64(o.Tokens-1))
	}
	if o.Kind == Answered {
		w.ended.est += t.est
		w.ended.fresh += max(1, t.tokens-t.cached)
	}
	if w.gone {
		free := p.release(w)
		p.mu.Unlock()
		if free {
			p.tell(now, event{w: w, kind: released})
		}
		return
	}
	events := p.passive(w, t, at, o)
	p.mu.Unlock()
	p.tell(now, events...)
}
