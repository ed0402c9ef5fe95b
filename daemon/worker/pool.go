package worker

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Pool is the workers of one [[pools]] table. Make it with New; it is safe for concurrent use.
type Pool struct {
	set    atomic.Pointer[settings]
	hooks  Config // as given to New: its hooks are read, no more
	log    *slog.Logger
	began  time.Time
	budget budget

	mu         sync.Mutex         // guards all below, and what a Worker and a Ticket say is guarded by it
	made       bool               // New is over: who comes now is late
	workers    []*Worker          // in order of slot
	numbers    uint64             // of workers, ever
	watched    map[uint64]*Worker // by number: those of taken
	taken      map[uint32]*Worker // slots in use, also by removed workers whose last request has not ended
	up         int                // workers that are up
	fleet      float64            // median slowness over all samples
	samples    int
	sent       float64 // requests sent, weighted as of aged
	aged       float64 // when the averages were last written down
	begun      float64 // requests sent, ever
	dispatched ring    // when the newest were sent
	panicked   bool    // nobody was up when a request came, and nobody has come up since
	panics     uint64  // requests that were given workers that are not up
}

// New makes a pool. No worker is up until its first good health check.
func New(c Config, now time.Time) *Pool {
	c = c.withDefaults()
	p := &Pool{hooks: c, log: c.Log, began: now, taken: map[uint32]*Worker{}, watched: map[uint64]*Worker{}, fleet: 1}
	p.set.Store(newSettings(c))
	p.budget.tokens = retryBurst
	p.Update(c.Workers, now)
	p.mu.Lock()
	p.made = true
	p.mu.Unlock()
	return p
}

// sec is the time in seconds since the pool began, never below a nanosecond: 0 means never in here.
func (p *Pool) sec(t time.Time) float64 { return max(1e-9, t.Sub(p.began).Seconds()) }

// Update makes specs the configured workers. A worker whose id and URLs are as before keeps its slot and all that is
// known of it; one that is no longer there gets nothing more, and its requests run to their end.
func (p *Pool) Update(specs []Spec, now time.Time) {
	p.mu.Lock()
	old := make(map[string]*Worker, len(p.workers))
	for _, w := range p.workers {
		old[w.id] = w
	}
	var events []event
	var next, fresh []*Worker
	seen := map[string]bool{}
	for _, s := range specs {
		w, err := newWorker(s)
		switch {
		case err != nil:
			events = append(events, event{kind: rejected, why: err.Error()})
			continue
		case seen[w.id]:
			events = append(events, event{kind: rejected, why: fmt.Sprintf("worker: two workers are named %q; give each its own id", w.id)})
			continue
		}
		seen[w.id] = true
		if was := old[w.id]; was != nil && was.url == w.url && was.scrap == w.scrap {
			delete(old, w.id)
			w = was
			events = append(events, w.adopt(s)...)
		} else {
			w.adopt(s) // told as registered
			fresh = append(fresh, w)
		}
		next = append(next, w)
	}
	for _, w := range old {
		events = append(events, p.remove(w))
	}
	p.workers = next
	p.dispatched.hold(warmth * len(next))
	for _, w := range fresh {
		p.add(w)
		events = append(events, event{w: w, kind: registered, tokens: w.capacity})
	}
	slices.SortFunc(p.workers, func(a, b *Worker) int { return cmp.Compare(a.slot, b.slot) })
	p.mu.Unlock()
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.kind, b.kind) })
	p.tell(now, events...)
}

// add gives w a slot and starts to watch it. The caller holds p.mu.
func (p *Pool) add(w *Worker) {
	for p.taken[w.slot] != nil {
		w.slot++
	}
	p.taken[w.slot] = w
	p.numbers++
	w.number = p.numbers
	p.watched[w.number] = w
	w.health.late = p.made
	p.hooks.Watcher.Watch(w.number, w.url, w.scrap)
}

// remove takes w out. The caller holds p.mu and takes it from p.workers.
func (p *Pool) remove(w *Worker) event {
	w.gone = true
	if w.health.state == up {
		p.up--
	}
	if w.inFlight > 0 {
		p.hooks.Watcher.WatchHealth(w.number)
	}
	w.queue.clear()
	w.breaker.reset()
	p.release(w)
	return event{w: w, kind: removed, tokens: w.inFlight}
}

// InFlight counts the requests at each worker by id: of those that Update removed, while their last has not ended, too.
func (p *Pool) InFlight() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := make(map[string]int, len(p.taken))
	for _, w := range p.taken {
		n[w.id] += w.inFlight
	}
	return n
}

// release frees a removed worker's slot after its last request and reports whether it did. The caller holds p.mu.
func (p *Pool) release(w *Worker) bool {
	if w.inFlight > 0 || w.released {
		return false
	}
	w.released = true
	p.hooks.Watcher.Unwatch(w.number)
	delete(p.taken, w.slot)
	delete(p.watched, w.number)
	return true
}

// Drain takes a worker out of Snapshot, or puts it back; its requests run to their end. It reports whether there is
// such a worker.
func (p *Pool) Drain(id string, on bool, now time.Time) bool {
	p.mu.Lock()
	i := slices.IndexFunc(p.workers, func(w *Worker) bool { return w.id == id })
	if i < 0 {
		p.mu.Unlock()
		return false
	}
	w := p.workers[i]
	var events []event
	if w.draining != on {
		w.draining = on
		kind := undrained
		if on {
			kind = drained
		} else {
			p.panicked = false
		}
		events = append(events, event{w: w, kind: kind, tokens: w.inFlight})
	}
	p.mu.Unlock()
	p.tell(now, events...)
	return true
}
