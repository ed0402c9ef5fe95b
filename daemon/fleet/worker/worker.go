package worker

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/labels"
	"github.com/warmpath/warmpath/daemon/fleet/measure"
	"github.com/warmpath/warmpath/daemon/fleet/models"
	"github.com/warmpath/warmpath/daemon/fleet/order"
)

// Worker is one vLLM engine of a pool: an instance, or one of the data-parallel ranks behind its port. The pool uses
// the same value from the moment the worker is configured or found until it is removed.
type Worker struct {
	identity
	*endpoint
	cpu   atomic.Int64 // tokens of KV that its CPU memory keeps
	block atomic.Int32 // tokens of a block of its KV cache by its newest metrics; 0 = none yet

	emptied atomic.Int64 // when its KV cache last lost what its requests had left there, on the pool's clock; 0 = never

	// The pool's lock guards all below. The fields of a row are adjacent.
	marks
	place     membership
	draining  bool // Drain was called for it
	offered   bool // in panic mode: Begin accepts requests to it although it is not up
	slowStart judge.SlowStart
	rested    bool // at the last page, a request was there that a pause or sleep has held up
	engine    judge.Engine
	queue     queue
	flight    flight
	kv        kv
	theirs    theirs
	coming    coming
	sent      uint64
	missed    uint64 // added to sent in rows: the others' mean while it was away, and sessions that were opened
	share     measure.Share
	speed     measure.WorkerSpeed
	ttft      measure.Mean
	signs     measure.Signs
	readings  readings
	prefilled prefilled // on the page that counted more of them last
	elsewhere measure.Elsewhere
	uses      models.Uses
	clearing  bool // its requests are being moved to other workers
	seats     []*order.Seat[*Worker]
	round     uint64 // of the request of which it was the last time a candidate

	capacity capacity
	ended    ended
	totals   totals
	shownAs  Standing  // its condition
	since    time.Time // when shownAs last changed
}

// membership states whether a worker is part of the pool.
type membership uint8

const (
	configured membership = iota
	leftOver              // removed by an update, with requests in flight
	freed                 // and its slot given back
)

// capacity is the size of a KV cache in tokens.
type capacity struct {
	configured int // 0 = from metrics
	inForce    int // 0 = unknown
}

// coming counts the requests in flight whose prompts are still computed elsewhere: they have no place yet.
type coming struct{ n, tokens int }

// ended sums up the requests that ended since the last scrape that counted any.
type ended struct {
	est float64
	new int // tokens that were not expected in the cache
}

// Slot returns the worker's number in its pool, the same for as long as it is configured. Another worker gets the slot
// only after this one was removed and its last request ended.
func (w *Worker) Slot() uint32 { return w.slot }

// ID returns the worker's name: the configured id, and for a data-parallel rank of several the id, a # and the rank, as
// in gpu-1#2.
func (w *Worker) ID() string { return w.id }

// Endpoint returns the configured id of the worker's address. It differs from ID for a data-parallel rank of several.
func (w *Worker) Endpoint() string { return w.name }

// Rank returns the worker's data-parallel rank behind its address, from 0; 0 also for a single rank.
func (w *Worker) Rank() uint32 { return w.rank }

// RankHeader returns the value of the header X-data-parallel-rank that selects the worker's engine behind its address;
// "" if there is no other.
func (w *Worker) RankHeader() string { return w.header }

// BlockTokens returns how many tokens a block of the worker's KV cache holds, by its metrics; 0 = not known.
func (w *Worker) BlockTokens() int { return int(w.block.Load()) }

// CPUTokens returns how many tokens of KV the worker's CPU memory keeps, as configured; 0 = none.
func (w *Worker) CPUTokens() int { return int(w.cpu.Load()) }

// Key returns a hash of the id, the same over restarts and routers.
func (w *Worker) Key() uint64 { return w.key }

// URL returns the base URL to send requests to. It may hold credentials: never log it.
func (w *Worker) URL() string { return w.url }

// otherRank reports whether that rank exists behind w's address and is another worker.
func (w *Worker) otherRank(rank int) bool { return int(w.rank) != rank && rank < len(w.ranks) }

// newRank makes the worker for rank r of n.
func (e *endpoint) newRank(r, n int) *Worker {
	return &Worker{identity: e.rankOf(r, n), endpoint: e, speed: measure.WorkerSpeed{Rel: 1}, draining: e.drained,
		shownAs: Starting}
}

// adopt applies the parts of its endpoint's spec that may change while a worker stays, and reports whether the capacity
// changed.
func (w *Worker) adopt(set *labels.Set) bool {
	w.marks = marksOf(w.endpoint, set)
	w.capacity.configured = w.spec.KVTokens
	w.cpu.Store(int64(w.spec.CPUTokens))
	return w.resize()
}

// resize sets the capacity in force from the configuration, or else from the metrics, and reports a change.
func (w *Worker) resize() bool {
	was := w.capacity.inForce
	w.capacity.inForce = cmp.Or(w.capacity.configured, w.readings.Capacity, was)
	return w.capacity.inForce != was
}

// forget drops the state of the worker's engine, because the engine is dead or was replaced. Requests that are still
// counted in flight end by their tickets.
func (w *Worker) forget() {
	w.queue.clear()
	w.share = measure.Share{}
	w.ended = ended{}
	w.speed = measure.WorkerSpeed{Rel: 1}
	w.ttft = measure.Mean{}
	w.signs = measure.Signs{}
	w.readings = readings{}
	w.prefilled = prefilled{}
	w.elsewhere = measure.Elsewhere{}
	w.uses = nil
	w.engine.Forget()
}

// condition returns a worker's state for pages and logs: Starting, Ready, Silent, Down, Asleep, Paused, Ejected or
// Draining, and the reason for the last two. Ready has the reason for which a worker that answers is not paired. A
// worker whose breaker lets a trial through is still Ejected or Draining. The reason also names a drain while the
// worker is Silent, Down or Starting: an operator who drained a worker, and then stopped it, looks for that.
func (w *Worker) condition() (s Standing, why string) {
	if w.draining {
		why = askedToDrain
	}
	switch {
	case !w.isUp():
		return w.endpoint.standing(), why
	case w.draining:
		return Draining, why
	case w.engine.Rest() == judge.Paused:
		return Paused, ""
	case w.engine.IsAsleep():
		return Asleep, ""
	case w.health.IsSetAside():
		return w.setAsideAs(), w.health.Why()
	}
	why, _ = w.health.Unpaired()
	if w.isSetAside() {
		return Ejected, why
	}
	if w.spec.Guest {
		why = guestWhy
	}
	return Ready, why
}

// setAsideAs returns the standing of a worker whose breaker is not closed.
func (w *Worker) setAsideAs() Standing {
	if w.health.IsGoingAway() {
		return Draining
	}
	return Ejected
}

const (
	askedToDrain = "asked to drain"
	guestWhy     = "outside of the subset: it serves its sessions alone"
)

// closed reports whether w gets no requests but those of its sessions.
func (w *Worker) closed() bool { return w.draining || w.spec.Guest }

// takes reports whether w may get requests, regardless of its limit.
func (w *Worker) takes(now time.Duration) bool { return !w.closed() && w.keeps(now) }

// keeps reports whether w may at least serve the sessions that are bound to it. A drain does not end those.
func (w *Worker) keeps(now time.Duration) bool {
	return w.isUp() && !w.engine.IsAsleep() && w.health.Lets(now)
}

// suspected reports whether w is only suspected of being sick: it is silent, or set aside because of its answers. If
// no other worker takes a request, suspicion is not a reason to refuse it.
func (w *Worker) suspected() bool {
	return !w.closed() && !w.engine.IsAsleep() &&
		(w.health.State() == judge.Silent || w.isUp() && w.health.IsSetAside())
}

// moment is what all rows of one Snapshot share.
type moment struct {
	now      time.Duration
	stale    time.Duration // age from which metrics are stale
	slowness float64       // the fleet's
	back     float64       // weight of the shares now

	elsewhere float64 // requests from elsewhere that each worker has at least
}

// standing returns what w can do for a request of the model that is bound to it.
func (w *Worker) standing(model string, l *limits, m *moment) Standing {
	switch s, _ := w.condition(); {
	case !w.isUp() || w.engine.IsAsleep():
		return s
	case !w.health.Lets(m.now):
		return w.setAsideAs()
	case !w.listing.Fits(model):
		return Lacking
	case w.full(l, m):
		return Full
	}
	return Ready
}

// full reports whether w has no room for another request.
func (w *Worker) full(l *limits, m *moment) bool { return w.packed(l, 0, nil) || w.backlogged(l, m) }

// packed reports whether w may get no further request, or has no KV for one with this number of tokens, its prefix
// included. A worker without a request takes any: one that is larger than the bound could go nowhere else either.
func (w *Worker) packed(l *limits, tokens int, b *Beginning) bool {
	if l.requests > 0 && w.endpoint.present() >= l.requests {
		return true
	}
	most := int(l.kv * float64(w.capacity.inForce))
	tokens -= w.coming.tokens
	if most == 0 || w.flight.n-w.coming.n+w.theirs.n == 0 || int(w.heldTokens())+tokens <= most {
		return false
	}
	w.kv.countShared(&w.flight)
	if b != nil {
		tokens -= w.kv.shared(b)
	}
	return int(w.heldTokens())+tokens > most
}

// heldTokens returns the tokens of KV that requests in flight hold.
func (w *Worker) heldTokens() uint32 { return uint32(max(0, w.kv.held()+w.theirs.tokens)) }

// backlogged reports whether more prefill is believed queued at w than it may have, without the answers in one piece
// whose prefill is over.
func (w *Worker) backlogged(l *limits, m *moment) bool {
	if l.wait == 0 || w.flight.n+w.theirs.n == 0 {
		return false
	}
	slow := m.slowness * w.speed.Times()
	w.queue.expire(m.now, slow)
	return w.queue.wait(m.now, slow) > l.wait
}

// read records a page of metrics of the worker's engine. It returns the number of requests on which the page measured a
// pace, 0 if it measured none. See pace.
func (w *Worker) read(m Metrics, c1 float64, now time.Duration) (requests float64) {
	was := w.readings
	w.readings = readings{Metrics: m, at: now}
	if m.Block > 0 {
		w.block.Store(int32(min(m.Block, math.MaxInt32)))
	}
	first := was.at == 0
	base := w.prefilled
	is := prefilled{requests: m.Prefills, seconds: m.Prefill, tokens: newTokens(&m)}
	if first || is.requests != base.requests { // SGLang counts the tokens of a prompt before the prompt
		w.prefilled = is
	}
	w.engine.Page(first, progressed(&was.Metrics, &m), m.Steps > 0, now)
	if first {
		return 0
	}
	rested := w.rested
	w.rested = w.engine.Rested(was.at) || w.flight.First != nil && w.engine.Rested(w.flight.First.Sent)
	if rested || w.rested { // the times of what has ended have the pause in them
		w.ended = ended{}
		return 0
	}
	w.totals.preempts += uint64(max(0, m.Preempts-was.Preempts)) // a pause that empties the cache puts all back
	if n, s := m.TokenTimes-was.TokenTimes, m.TokenTime-was.TokenTime; n > 0 && s > 0 {
		w.signs.Note(&w.signs.Pages, s/n, now)
		w.signs.Paged = now
	}
	requests = is.requests - base.requests
	seconds, tokens := is.seconds-base.seconds, is.tokens-base.tokens
	if requests <= 0 {
		return 0
	}
	perToken := c1
	if w.ended.new >= minSample { // long prompts take more a token
		perToken = w.ended.est / float64(w.ended.new)
	}
	w.ended = ended{}
	// Below minSample a step's fixed cost is measured. A process's first request often waits for a compiler.
	if seconds <= 0 || tokens < minSample*requests || base.requests == 0 {
		return 0
	}
	w.speed.Pace = measure.Pace{Value: seconds / (tokens * perToken), At: now}
	return requests
}

// staleAfter returns the age from which w's metrics are stale: those of an idle worker stay as they are.
func (w *Worker) staleAfter(m *moment) time.Duration {
	if w.endpoint.idle {
		return math.MaxInt64
	}
	return m.stale
}

// begin counts a request.
func (w *Worker) begin(r *request) {
	w.sent++
	w.inFlight++
	w.slowStart.Spend()
	if r.Paired {
		w.health.SentPaired(r.Sent)
	}
	w.flight.push(r)
	w.kv.add(r)
	if r.coming {
		w.endpoint.coming++
		w.coming.n++
		w.coming.tokens += r.holds()
	}
}

// arrive counts an announced request as one in flight.
func (w *Worker) arrive(r *request) {
	if r.coming {
		r.coming = false
		w.endpoint.coming--
		w.coming.n--
		w.coming.tokens -= r.holds()
	}
}

// noteKnown records for the load from elsewhere what the known routers have there.
func (w *Worker) noteKnown(now time.Duration) {
	w.elsewhere.Note(w.flight.sequences+w.theirs.n, int(w.heldTokens()), now)
}

// end counts a request down.
func (w *Worker) end(r *request, o judge.Outcome, now time.Duration) {
	w.arrive(r)
	w.queue.remove(r)
	w.flight.remove(r)
	w.kv.remove(r)
	w.noteKnown(now)
	w.inFlight--
	if r.adapts {
		w.uses.EndName(r.model, now)
	}
	if o.Kind != judge.Answered {
		return
	}
	if r.First > 0 && !r.Whole && o.Tokens > 1 && !w.engine.Rested(r.First) {
		w.signs.NoteStream(max(0, (now-r.First).Seconds())/float64(o.Tokens-1), now)
	}
	w.ended.est += r.est
	w.ended.new += r.newTokens()
}
