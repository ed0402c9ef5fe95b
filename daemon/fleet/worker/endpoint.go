package worker

import (
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/models"
)

// endpoint is the address of one or several workers, and the process there. A vLLM with --data-parallel-size N has N
// engines behind one port, each with a KV cache, a queue and a load of its own. Each engine is a Worker. The endpoint
// holds what these ranks share: the port is probed once, it is up or down as a whole, and its breaker counts the
// answers of all.
type endpoint struct {
	address
	// All below is guarded by the pool's lock.
	spec     Spec      // as configured, for ranks to come
	ranks    []*Worker // by rank, at least one; replaced, never changed, as events hold it
	place    membership
	drained  bool // Drain was called for all of it: ranks to come are drained too
	inFlight int  // requests at its ranks, also at removed ones
	coming   int  // of these, whose prompts are still computed elsewhere
	theirs   int  // those of other routers

	health  judge.Health      // its Flow needs no lock
	listing *models.Listing   // nil = not read yet: any model may be there
	entries []json.RawMessage // of listing.ids
	renewal renewal           // of listing and entries
	slots   []slot            // of adapters that are being loaded
	adapted bool              // an adapter was loaded or lost since the worker was last asked for its list
	suspect *Worker           // for which it was set aside last; nil = it never was
	census  census
	unread  int  // looks in a row at its metrics that found no page
	idle    bool // by Phase: it is asked less often
	heard   publishedAt

	deniesKey bool // the last reading of its models was refused

	weights  atomic.Uint64     // its Weights; read without the lock
	oldest   Weights           // the version that has computed since the KV cache was empty; 0 = it is, or none is known
	said     Weights           // what its engine said last of them; 0 = nothing
	called   Weights           // that a call of this router's brings, or has brought last; 0 = none
	labelled map[string]string // the spec's labels, and that of its weights; replaced, never changed
}

// unreadLooks is how many looks in a row at a worker that is up must find no page of metrics before the log says so: a
// worker that has just begun may not have one yet.
const unreadLooks = 5

// MaxRanks bounds the data-parallel ranks of a worker.
const MaxRanks = 256

// census is the number of engines by the worker's metrics.
type census struct {
	fewer int // pages in a row that showed fewer than there are ranks
	odd   int // engines on the last page that did not fit the ranks and was logged; 0 = they fit
}

// fewerPages is how many pages in a row must show fewer engines before ranks are removed: these take their sessions
// with them. A larger number is accepted at once, and so is any number after a start.
const fewerPages = 2

// present returns how many requests have a place at the endpoint, those of other routers among them.
func (e *endpoint) present() int { return e.inFlight - e.coming + e.theirs }

// leastComing bounds the requests that are on their way to a worker while their prompts are computed elsewhere, where
// max_in_flight is smaller; a larger one is the bound itself.
const leastComing = 64

// expectsMost reports whether no more requests may be on their way to the endpoint.
func (e *endpoint) expectsMost(l *limits) bool {
	return l.requests > 0 && e.coming >= max(leastComing, l.requests)
}

// isUp reports whether the endpoint passes its health checks.
func (e *endpoint) isUp() bool { return e.health.IsUp() }

// learns reports whether the worker's metrics set the number of ranks.
func (e *endpoint) learns() bool { return e.spec.DataParallel == 0 }

// believes counts a page of metrics that shows n engines, and reports whether the endpoint shall have n ranks.
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

// forget drops the state of the endpoint's process and of its engines, because the process is dead or was replaced.
func (e *endpoint) forget() {
	e.health.Forget()
	e.census.fewer = fewerPages // a new process may have any number of engines: its first page counts
	for _, w := range e.ranks {
		w.forget()
	}
}

// standing returns the standing of the endpoint's workers while it is not up, and Ready while it is.
func (e *endpoint) standing() Standing {
	switch e.health.State() {
	case judge.Starting:
		return Starting
	case judge.Silent:
		return Silent
	case judge.Down:
		return Down
	}
	return Ready
}

// allDrain reports whether Drain was called for every rank.
func (e *endpoint) allDrain() bool {
	return !slices.ContainsFunc(e.ranks, func(w *Worker) bool { return !w.draining })
}

// renews reports whether the endpoint is up and its list is being read anew.
func (e *endpoint) renews() bool { return e.renewal != renewed && e.isUp() }
