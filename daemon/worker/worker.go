package worker

import (
	"cmp"
	"encoding/json"
	"math"
	"sync/atomic"
	"time"
)

// Worker is one vLLM instance of a pool. The same value stands for it from the day it is configured until it is
// removed.
type Worker struct {
	identity
	block atomic.Int32 // tokens of a block of its KV cache, as it last said; 0 = never
	flow  atomic.Int64 // nanoseconds from the pool's beginning to the last byte of an answer; 0 = none came

	// All below is guarded by the pool's lock. What a row needs stands together.
	marks
	place     place
	draining  bool     // asked to by Drain
	offered   bool     // in panic mode: TryBegin accepts requests to it though it is not up
	listing   *listing // nil = not read yet: any model may be there
	health    health
	breaker   breaker
	slowStart slowStart
	queue     queue
	flight    flight
	sent      uint64
	missed    uint64 // added to sent in rows: what each of the others got while it was away
	share     share
	speed     speed
	ttft      mean
	tpot      mean
	readings  readings

	capacity  capacity
	process   float64           // when its process began, as last read; outlives a death, to recognise a new process
	entries   []json.RawMessage // of listing.ids
	ended     ended
	failures  failures
	lastError lastError
	totals    totals
	shownAs   Standing  // its condition
	since     time.Time // when it became that
}

// place is where a worker stands in the pool.
type place uint8

const (
	configured place = iota
	leftOver         // removed by an update, with requests in flight
	freed            // and its slot given back
)

// capacity is the size of a KV cache in tokens.
type capacity struct {
	configured int // 0 = by metrics
	inForce    int // 0 = unknown
}

// ended sums up the requests that ended since a scrape last counted any.
type ended struct {
	est float64
	new int // tokens not believed cached
}

// Slot is the worker's number in its pool, the same for as long as it is configured. A slot is given to another worker
// only after this one was removed and its last request ended.
func (w *Worker) Slot() uint32 { return w.slot }

// ID is the worker's name.
func (w *Worker) ID() string { return w.id }

// BlockTokens is how many tokens a block of the worker's KV cache holds, by its metrics; 0 = not known.
func (w *Worker) BlockTokens() int { return int(w.block.Load()) }

// Key is a hash of the id, the same over restarts and routers.
func (w *Worker) Key() uint64 { return w.key }

// URL is the base URL to send requests to. It may hold credentials: never log it.
func (w *Worker) URL() string { return w.url }

func newWorker(who identity) *Worker {
	return &Worker{identity: who, speed: speed{rel: 1}, shownAs: Starting}
}

// adopt sets what may change while a worker stays, and reports whether its capacity did.
func (w *Worker) adopt(s *Spec, labels *labelSet) bool {
	w.marks = marksOf(s, labels)
	w.capacity.configured = s.KVTokens
	return w.resize()
}

// resize brings the capacity in force up to date, as configured or else as the worker says, and reports a change.
func (w *Worker) resize() bool {
	was := w.capacity.inForce
	w.capacity.inForce = cmp.Or(w.capacity.configured, w.readings.Capacity, was)
	return w.capacity.inForce != was
}

// forget drops what is known of the worker's process: it is dead or a new one. Requests that are still counted in
// flight end by their tickets.
func (w *Worker) forget() {
	w.queue.clear()
	w.breaker.reset()
	w.failures = failures{}
	w.share = share{}
	w.ended = ended{}
	w.speed = speed{rel: 1}
	w.ttft = mean{}
	w.tpot = mean{}
	w.readings = readings{}
}

// condition returns a worker's state for pages and logs: Starting, Ready, Down, Ejected or Draining, and why it is one
// of the last two. A worker whose breaker lets a trial through is still Ejected or Draining.
func (w *Worker) condition() (s Standing, why string) {
	switch {
	case w.health.state == starting:
		return Starting, ""
	case w.health.state == down:
		return Down, ""
	case w.draining:
		return Draining, "asked to"
	case w.breaker.cause != none:
		return w.breaker.standing(), w.breaker.why
	}
	return Ready, ""
}

// isUp reports whether w passes its health checks.
func (w *Worker) isUp() bool { return w.health.state == up }

// takes reports whether w may get requests, however many it has.
func (w *Worker) takes(now float64) bool { return !w.draining && w.keeps(now) }

// keeps reports whether w may at least serve the sessions that it has. A drain does not end those.
func (w *Worker) keeps(now float64) bool { return w.isUp() && w.breaker.lets(now) }

// full reports whether w has as many requests as the limit allows; 0 = no limit.
func (w *Worker) full(limit int) bool { return limit > 0 && w.flight.n >= limit }

// standing is what w can do for a request of the model that is bound to it.
func (w *Worker) standing(model string, limit int, now float64) Standing {
	switch s, _ := w.condition(); {
	case !w.isUp():
		return s
	case !w.breaker.lets(now):
		return w.breaker.standing()
	case !w.listing.fits(model):
		return Lacking
	case w.full(limit):
		return Full
	}
	return Ready
}

// note records an error.
func (w *Worker) note(text string, at time.Time, by source) {
	w.lastError.note(text, at, by, w.health.state == down)
}

// flows reports whether a byte of an answer came from w in the last seconds.
func (w *Worker) flows(sinceBegan time.Duration) bool {
	last := w.flow.Load()
	return last > 0 && sinceBegan-time.Duration(last) < flowing
}

// read records a page of metrics. It returns on how many requests the page measured a pace, 0 if it measured none. See
// pace.
func (w *Worker) read(m Metrics, c1, now float64) (requests float64) {
	was := w.readings
	w.readings = readings{Metrics: m, at: now}
	if m.Process != 0 {
		w.process = m.Process
	}
	if m.Block > 0 {
		w.block.Store(int32(min(m.Block, math.MaxInt32)))
	}
	w.lastError.good(byMetrics)
	if was.at == 0 {
		return 0
	}
	if n, s := m.TokenTimes-was.TokenTimes, m.TokenTime-was.TokenTime; n > 0 && s > 0 {
		w.tpot.add(s / n)
	}
	requests = m.Prefills - was.Prefills
	seconds, tokens := m.Prefill-was.Prefill, newTokens(&m)-newTokens(&was.Metrics)
	if requests <= 0 {
		return 0
	}
	perToken := c1
	if w.ended.new >= minSample { // long prompts take more a token
		perToken = w.ended.est / float64(w.ended.new)
	}
	w.ended = ended{}
	// Below minSample a step's fixed cost is measured. A process' first request often waits for a compiler.
	if seconds <= 0 || tokens < minSample*requests || was.Prefills == 0 {
		return 0
	}
	w.speed.pace = pace{value: seconds / (tokens * perToken), at: now}
	return requests
}

// isNewProcess reports whether m is of another process than the page before.
func (w *Worker) isNewProcess(m *Metrics) bool {
	return w.process != 0 && m.Process != 0 && math.Abs(m.Process-w.process) > 1
}

// begin counts a request.
func (w *Worker) begin(r *request) {
	w.sent++
	w.slowStart.spend()
	w.breaker.sent(r)
	w.queue.push(r)
	w.flight.push(r)
}

// end counts a request down.
func (w *Worker) end(r *request, o Outcome, now float64) {
	w.queue.remove(r)
	w.flight.remove(r)
	if o.Kind != Answered {
		return
	}
	if r.first > 0 && !r.whole && o.Tokens > 1 {
		w.tpot.add(max(0, now-r.first) / float64(o.Tokens-1))
	}
	w.ended.est += r.est
	w.ended.new += r.newTokens()
}
