package worker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// fleet is the workers of a pool, and what they have in common. All of it is guarded by the pool's lock.
type fleet struct {
	began   time.Time
	watcher Watcher
	grace   func(w *Worker) // starts the time that requests in flight at a worker that went down may still take
	conf    *settings       // in force
	running bool            // New has returned: a worker that is added now starts slowly

	workers []*Worker          // in order of slot
	taken   map[uint32]*Worker // by slot, also removed workers whose last request has not ended
	watched map[uint64]*Worker // the same by number
	numbers uint64             // how many were given, ever
	up      int                // workers that are up

	speed    fleetSpeed
	rates    rates
	panicked bool   // nobody was up when a request came, and nobody has come up since
	panics   uint64 // requests that were given workers that are not up
	events   []event
}

// sec is the time in seconds since the pool began, never below a nanosecond: 0 means never in here.
func (f *fleet) sec(t time.Time) float64 { return max(1e-9, t.Sub(f.began).Seconds()) }

// note records a change of w. Pool.unlock announces it.
func (f *fleet) note(w *Worker, e event, now float64) {
	e.who = &w.identity
	f.events = append(f.events, e)
	if s, _ := w.condition(); s != w.shownAs || w.since.IsZero() {
		w.shownAs = s
		w.since = f.began.Add(seconds(now))
	}
}

// update makes specs the configured workers.
func (f *fleet) update(specs []Spec, labels *labelSet, now float64) {
	old := make(map[string]*Worker, len(f.workers))
	for _, w := range f.workers {
		old[w.id] = w
	}
	var next, fresh []*Worker
	seen := map[string]bool{}
	for i := range specs {
		who, err := identify(specs[i])
		if err == nil && seen[who.id] {
			err = fmt.Errorf("worker: two workers are named %q; give each its own id", who.id)
		}
		if err != nil {
			f.events = append(f.events, event{kind: rejected, why: err.Error()})
			continue
		}
		seen[who.id] = true
		w := old[who.id]
		if w != nil && w.sameAs(&who) {
			delete(old, who.id)
			if w.adopt(&specs[i], labels) {
				f.note(w, event{kind: resized, tokens: w.capacity.inForce}, now)
			}
		} else {
			w = newWorker(who)
			w.adopt(&specs[i], labels)
			fresh = append(fresh, w)
		}
		next = append(next, w)
	}
	for _, w := range old {
		f.remove(w, now)
	}
	f.workers = next
	f.rates.newest.hold(warmth * len(next))
	for _, w := range fresh {
		f.add(w, now)
	}
	slices.SortFunc(f.workers, func(a, b *Worker) int { return cmp.Compare(a.slot, b.slot) })
	slices.SortStableFunc(f.events, func(a, b event) int { return cmp.Compare(a.kind, b.kind) })
}

// add gives w a slot and a number, and has it watched.
func (f *fleet) add(w *Worker, now float64) {
	for f.taken[w.slot] != nil {
		w.slot++
	}
	f.numbers++
	w.number = f.numbers
	f.taken[w.slot] = w
	f.watched[w.number] = w
	w.health.late = f.running
	f.watcher.Watch(w.number, w.url, w.metrics)
	f.note(w, event{kind: registered, tokens: w.capacity.inForce}, now)
}

// remove takes w out. The caller takes it from f.workers.
func (f *fleet) remove(w *Worker, now float64) {
	w.place = leftOver
	if w.isUp() {
		f.up--
	}
	if w.flight.n > 0 {
		f.watcher.WatchHealth(w.number)
	}
	w.queue.clear()
	w.breaker.reset()
	f.note(w, event{kind: removed, tokens: w.flight.n}, now)
	f.release(w)
}

// release frees a removed worker's slot after its last request, and reports whether it did.
func (f *fleet) release(w *Worker) bool {
	if w.flight.n > 0 || w.place != leftOver {
		return false
	}
	w.place = freed
	f.watcher.Unwatch(w.number)
	delete(f.taken, w.slot)
	delete(f.watched, w.number)
	return true
}

// find returns the configured worker of that id, nil if there is none.
func (f *fleet) find(id string) *Worker {
	i := slices.IndexFunc(f.workers, func(w *Worker) bool { return w.id == id })
	if i < 0 {
		return nil
	}
	return f.workers[i]
}

// advance brings all averages and queues up to a time, and returns what the rows of that time have in common. It does
// so for all workers before the first row is filled: a sample in one queue changes the fleet's speed, so rows of equal
// workers would differ.
func (f *fleet) advance(at float64) moment {
	f.age(at)
	for _, w := range f.workers {
		f.settle(w, at)
	}
	return moment{now: at, stale: 3 * f.conf.ScrapeInterval.Seconds(), slowness: f.speed.slowness, back: f.rates.back(at)}
}

// age lets averages fade and speeds drift, once a second.
func (f *fleet) age(now float64) {
	dt := f.rates.age(now)
	if dt == 0 {
		return
	}
	fade, drift := math.Exp(-dt/window), math.Exp(-dt/driftTime)
	for _, w := range f.workers {
		w.share.fade(fade)
		w.speed.drift(drift)
	}
}

// settle brings w's queue to now: a complete group of first bytes becomes a sample, answers in one piece leave.
func (f *fleet) settle(w *Worker, now float64) {
	if x, ok := w.queue.sample(now); ok {
		f.speed.learn(&w.speed, x)
	}
	w.queue.expire(now, f.speed.slowness*w.speed.rel)
}

// begin counts a request to w.
func (f *fleet) begin(w *Worker, r *request) {
	f.age(r.at)
	f.settle(w, r.at)
	f.rates.add(&w.share, r.est*f.speed.slowness*w.speed.rel, r.at)
	w.begin(r)
}

// weight is the weight of all workers that are up.
func (f *fleet) weight() (sum float64) {
	for _, w := range f.workers {
		if w.isUp() {
			sum += w.weight
		}
	}
	return max(sum, 1e-9)
}

// compare corrects the relative speeds of all workers by the pace of w, which its metrics measured on n requests.
func (f *fleet) compare(w *Worker, n float64) {
	all := make([]*speed, len(f.workers))
	for i, o := range f.workers {
		all[i] = &o.speed
	}
	w.speed.compare(all, n)
}

// failsAlone reports whether a failed answer of w is blamed on w, not on the request.
func (f *fleet) failsAlone(w *Worker) bool {
	sum, n := 0.0, 0
	for _, o := range f.workers {
		if o != w && o.isUp() && o.failures.n > 0 {
			sum += o.failures.share
			n++
		}
	}
	return w.failures.own(sum, n)
}

// saturated reports whether every worker that is up is full. It is false if none is up.
func (f *fleet) saturated() bool {
	some := false
	for _, w := range f.workers {
		if !w.isUp() || w.draining {
			continue
		}
		if !w.full(f.conf.MaxInFlight) {
			return false
		}
		some = true
	}
	return some
}

// list records the models of w. Workers with equal listings share one.
func (f *fleet) list(w *Worker, ids []string, entries []json.RawMessage) {
	w.lastError.good(byModels)
	w.entries = entries
	for _, o := range f.workers {
		if o.listing != nil && slices.Equal(o.listing.ids, ids) {
			w.listing = o.listing
			return
		}
	}
	w.listing = newListing(ids)
}

// entries returns the entries of /v1/models of the workers that are up, as the first of them wrote each, one an id.
func (f *fleet) entries() (out []json.RawMessage) {
	seen := map[string]bool{}
	for _, w := range f.workers {
		if !w.isUp() || w.listing == nil {
			continue
		}
		for i, id := range w.listing.ids {
			if !seen[id] {
				seen[id] = true
				out = append(out, w.entries[i])
			}
		}
	}
	return out
}
