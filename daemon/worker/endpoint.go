package worker

import (
	"encoding/json"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// endpoint is the address of workers, and the process there: what data-parallel ranks share. A vLLM with
// --data-parallel-size N has N engines behind one port, each with a KV cache, a queue and a load of its own. Each is a
// Worker. What concerns the port or the process stands here, once: it is asked once, it is up or down as a whole, and
// its breaker counts the answers of all.
type endpoint struct {
	address
	flow atomic.Int64 // nanoseconds from the pool's beginning to the last byte of an answer; 0 = none came

	// All below is guarded by the pool's lock.
	spec     Spec      // as configured, for ranks to come
	ranks    []*Worker // by rank, at least one; replaced, never changed, as events hold it
	place    place
	drained  bool // asked to by Drain as a whole: ranks to come are drained too
	inFlight int  // requests at its ranks, also at those that it has no more
	theirs   int  // those of other routers

	health    health
	breaker   breaker
	failures  failures
	listing   *listing          // nil = not read yet: any model may be there
	entries   []json.RawMessage // of listing.ids
	process   float64           // when its process began, as last read; outlives a death, to recognise a new process
	lastError lastError
	census    census
}

// MaxRanks bounds the data-parallel ranks of a worker.
const MaxRanks = 256

// census is what the worker's metrics say of how many engines it has.
type census struct {
	fewer int // pages in a row that showed fewer than there are ranks
	odd   int // engines on the last page that did not fit the ranks, which was logged; 0 = they fit
}

// fewerPages is how many pages in a row must show fewer engines to be believed: the ranks that go take their sessions
// with them. More engines are believed at once, as is everything after a start.
const fewerPages = 2

// isUp reports whether the endpoint passes its health checks.
func (e *endpoint) isUp() bool { return e.health.state == up }

// full reports whether there are as many requests, those of other routers too, as the limit allows; 0 = no limit.
func (e *endpoint) full(limit int) bool { return limit > 0 && e.inFlight+e.theirs >= limit }

// learns reports whether the number of ranks is as the worker says.
func (e *endpoint) learns() bool { return e.spec.DataParallel == 0 }

// believes reports whether the number of ranks becomes n, as a page of metrics shows.
func (e *endpoint) believes(n int) bool {
	if n >= len(e.ranks) {
		e.census.fewer = 0
		return n > len(e.ranks)
	}
	e.census.fewer++
	return e.census.fewer >= fewerPages
}

// isOdd reports, once for each number, that the metrics show another number of engines than there are ranks.
func (e *endpoint) isOdd(engines int) bool {
	if engines == len(e.ranks) {
		e.census.odd = 0
		return false
	}
	was := e.census.odd
	e.census.odd = max(1, engines)
	return e.census.odd != was
}

// note records an error.
func (e *endpoint) note(text string, at time.Time, by source) {
	e.lastError.note(text, at, by, e.health.state == down)
}

// flows reports whether a byte of an answer came from the endpoint in the last seconds.
func (e *endpoint) flows(sinceBegan time.Duration) bool {
	last := e.flow.Load()
	return last > 0 && sinceBegan-time.Duration(last) < flowing
}

// isNewProcess reports whether a page of metrics is of another process than the one before. began is when its process
// began, 0 if it does not say.
func (e *endpoint) isNewProcess(began float64) bool {
	return e.process != 0 && began != 0 && math.Abs(began-e.process) > 1
}

// forget drops what is known of the endpoint's process and of its engines: it is dead or a new one.
func (e *endpoint) forget() {
	e.breaker.reset()
	e.failures = failures{}
	e.census.fewer = fewerPages // a new process may have any number of engines, and its first page is believed
	for _, w := range e.ranks {
		w.forget()
	}
}

// standing is what a worker of the endpoint can do while the endpoint is not up; Ready if it is.
func (e *endpoint) standing() Standing {
	switch e.health.state {
	case starting:
		return Starting
	case down:
		return Down
	}
	return Ready
}

// allDrain reports whether every rank was asked to drain.
func (e *endpoint) allDrain() bool {
	return !slices.ContainsFunc(e.ranks, func(w *Worker) bool { return !w.draining })
}
