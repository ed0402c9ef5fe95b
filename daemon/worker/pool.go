package worker

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Pool is the workers of one [[pools]] table. Make it with New; it is safe for concurrent use. It takes the lock, lets
// the fleet decide, and announces what has changed once the lock is given back.
type Pool struct {
	later    func(d time.Duration, f func(now time.Time))
	set      atomic.Pointer[settings] // as fleet.conf, for readers without the lock
	labels   atomic.Pointer[labelSet]
	announce announcer
	budget   budget
	count    atomic.Int32 // of the fleet's workers

	mu    sync.Mutex // guards fleet but for fleet.began, and what a Worker and a request say is guarded by it
	fleet fleet
}

// New makes a pool. No worker is up until its first good health check.
func New(c Config, now time.Time) *Pool {
	c = c.withDefaults()
	p := &Pool{later: c.After, announce: newAnnouncer(&c), budget: newBudget()}
	p.fleet = fleet{
		began: now, watcher: c.Watcher, grace: p.beginGrace, speed: fleetSpeed{slowness: 1},
		taken: map[uint32]*Worker{}, watched: map[uint64]*endpoint{},
	}
	p.fleet.conf = newSettings(c)
	p.set.Store(p.fleet.conf)
	p.labels.Store(&labelSet{})
	p.Update(c.Workers, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fleet.running = true
	return p
}

// unlock gives the lock back, and announces what changed while it was held.
func (p *Pool) unlock() {
	events := p.fleet.events
	p.fleet.events = nil
	if n := int32(len(p.fleet.workers)); n != p.count.Load() {
		p.count.Store(n)
	}
	p.mu.Unlock()
	p.announce.announce(events)
}

// Configure replaces intervals, limits, budget and prefill speed, at once and without losing what is known of a worker.
// Workers and what Config says is New's are ignored.
func (p *Pool) Configure(c Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, next := p.fleet.conf, newSettings(c.withDefaults())
	// What was learnt is seconds over estimated seconds: with the estimate changed, the product stays what it was.
	p.fleet.speed.slowness = bound(p.fleet.speed.slowness * was.c1 / next.c1)
	p.fleet.conf = next
	p.set.Store(next)
}

// Update makes specs the configured workers. A worker whose id and URLs are as before keeps its slot and all that is
// known of it. One that is no longer there gets nothing more, and its requests run to their end.
func (p *Pool) Update(specs []Spec, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	labels := p.labels.Load().after(specs)
	p.labels.Store(labels)
	p.fleet.update(specs, labels, p.fleet.sec(now))
}

// Drain takes a worker out of the snapshots, or puts it back. Its requests run to their end. id is that of a worker, or
// the configured one of several data-parallel ranks, which means all of them. Drain reports whether there is such a
// worker.
func (p *Pool) Drain(id string, on bool, now time.Time) bool {
	p.mu.Lock()
	defer p.unlock()
	return p.fleet.drain(id, on, p.fleet.sec(now))
}

// Drains returns what was asked for by Drain and still holds, by worker: true is a drain, false the end of one that the
// worker's Spec asks for. Drain of another pool of the same workers takes it.
func (p *Pool) Drains() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.drains()
}

// Snapshot appends a row for each worker that can take the request, and the workers beside them, in order of slot: up,
// not draining, its breaker closed or ready for a trial, below MaxInFlight, its turn if it starts slowly, and listing
// the model. Any model fits a worker until its models were read. The rows lack what depends on the prompt: Predicted,
// GPU, L1, L2, FreeGPU, FreeL1, ReuseGPU and ReuseL1 are the prefix index's, by the row's slot.
//
// The Standing is Ready or Panicked if there are rows, else why there are none: Full, Starting, Down or Lacking.
// Snapshot does not allocate if rows and ws have the capacity.
func (p *Pool) Snapshot(q Query, rows []abi.Row, ws []*Worker) ([]abi.Row, []*Worker, Standing) {
	p.mu.Lock()
	defer p.unlock()
	s := shot{Query: q, fleet: &p.fleet, moment: p.fleet.advance(p.fleet.sec(q.At)), rows: rows, workers: ws}
	s.take()
	return s.rows, s.workers, s.standing
}

// Standing returns what the worker of that id can do for a request of the model that is bound to it.
func (p *Pool) Standing(id, model string, now time.Time) Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.fleet.find(id)
	if w == nil {
		return p.fleet.absence(id)
	}
	return w.standing(model, p.fleet.conf.MaxInFlight, p.fleet.sec(now))
}

// FailsAlone reports whether a failed answer of w is blamed on w, not on the request: w fails often, and the others
// that are up far less.
func (p *Pool) FailsAlone(w *Worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.failsAlone(w.endpoint)
}

// Saturated reports whether every worker that is up has MaxInFlight requests, so that Snapshot would answer Full
// whatever the model. It is false if none is up.
func (p *Pool) Saturated() bool {
	if p.set.Load().MaxInFlight == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.saturated()
}

// Others appends to into the workers that have no row, limit of them at most. rows are those of a Snapshot: where all
// workers have one, that costs a look at their number.
func (p *Pool) Others(rows []abi.Row, now time.Time, into []Stats, limit int) []Stats {
	if int(p.count.Load()) == len(rows) {
		return into
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at, next := p.fleet.sec(now), 0
	var m moment // looked up for the first that has none
	for _, w := range p.fleet.workers {
		if next < len(rows) && rows[next].Worker == w.slot {
			next++
			continue
		}
		if len(into) < limit && !slices.ContainsFunc(rows, func(r abi.Row) bool { return r.Worker == w.slot }) {
			if m.now == 0 {
				m = p.fleet.advance(at)
			}
			into = append(into, w.stats(&m, p.fleet.conf.MaxInFlight))
		}
	}
	return into
}

// Request counts a client's request, which earns its share of a repeat. Call it once a request, not for its repeats.
func (p *Pool) Request(now time.Time) { p.budget.earn(p.set.Load().RetryBudget, now) }

// MayRetry takes one repeat from the budget and reports whether there was one. Call it before a request that has
// reached one worker is sent to another. A refused connection needs no budget: the worker has seen nothing, and is down
// for all others from then on, so it costs each request at most one dial a worker.
func (p *Pool) MayRetry(now time.Time) bool { return p.budget.spend(now) }

// C1 is the estimated seconds of prefill a token, on a worker of slowness 1.
func (p *Pool) C1() float64 { return p.set.Load().c1 }

// C2 is the further seconds a token for each token before it: attention costs as much as the rest at
// abi.AttentionTokens.
func (p *Pool) C2() float64 { return p.set.Load().c2 }

// Estimate returns the seconds of prefill on a worker of slowness 1 for a prompt of so many tokens, some of them
// cached.
func (p *Pool) Estimate(tokens, cached int) float64 { return p.set.Load().estimate(tokens, cached) }

// Labels returns the different labels of the workers, each as name=value, by their bit in Row.Labels. The epoch is
// another number whenever the names are others. The caller must not change the slice.
func (p *Pool) Labels() (names []string, epoch uint32) {
	l := p.labels.Load()
	return l.names, l.epoch
}

// Lambda is the requests sent per second and worker that is up: the average over 30 s, or half of the newest rate if
// that is more.
func (p *Pool) Lambda(now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.rates.lambda(p.fleet.sec(now), p.fleet.up)
}

// Stats describes all workers, in order of slot.
func (p *Pool) Stats(now time.Time) []Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.fleet.advance(p.fleet.sec(now))
	out := make([]Stats, len(p.fleet.workers))
	for i, w := range p.fleet.workers {
		out[i] = w.stats(&m, p.fleet.conf.MaxInFlight)
	}
	return out
}

// Counts returns what is counted of the pool as a whole.
func (p *Pool) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Counts{Panics: p.fleet.panics, RetriesRefused: p.budget.refused()}
}

// Up is the number of workers that get requests.
func (p *Pool) Up(now time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.fleet.sec(now)
	for _, w := range p.fleet.workers {
		if w.takes(at) {
			n++
		}
	}
	return n
}

// KeyAt returns the Key of the configured worker of a slot; false if there is none.
func (p *Pool) KeyAt(slot uint32) (key uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.fleet.workers {
		if w.slot == slot {
			return w.key, true
		}
	}
	return 0, false
}

// InFlight counts the requests at each worker by id: of those that Update removed, while their last has not ended, too.
func (p *Pool) InFlight() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := make(map[string]int, len(p.fleet.taken))
	for _, w := range p.fleet.taken {
		n[w.id] += w.flight.n
	}
	return n
}

// Models returns the entries of /v1/models of all workers that are up, as the first of them wrote each, one an id.
func (p *Pool) Models() []json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.entries()
}

// beginGrace begins the grace for the requests in flight at w, which has just gone down. A process that shuts down
// closes its port first and may answer what it has for as long as it likes, so a silent request is not given up at
// once. One that hangs while it shuts down keeps its connections open, so without an end to the grace a request would
// wait for header_timeout. The caller holds p.mu.
func (p *Pool) beginGrace(w *Worker) {
	if w.flight.n == 0 {
		return
	}
	fell := w.health.fell
	p.later(p.fleet.conf.DownGrace, func(now time.Time) { p.giveUp(w, fell, now) })
}

// giveUp calls the holders whose grace is over, and comes back when the next one's is. A worker that came up again has
// ended the grace, and its next fall begins another. While nobody is up and Config.Panic is set, the health checks are
// not believed.
func (p *Pool) giveUp(w *Worker, fell float64, now time.Time) {
	at := p.fleet.sec(now)
	p.mu.Lock()
	var late []Holder
	next := noneDue
	if w.health.fell == fell {
		late, next = w.flight.overdue(fell, p.fleet.conf.DownGrace.Seconds(), at)
	}
	believed := !p.fleet.conf.Panic || p.fleet.up > 0
	p.mu.Unlock()
	if believed {
		for _, h := range late {
			h.GiveUp()
		}
	}
	if next < noneDue {
		p.later(max(time.Millisecond, seconds(next-at)), func(then time.Time) { p.giveUp(w, fell, then) })
	}
}
