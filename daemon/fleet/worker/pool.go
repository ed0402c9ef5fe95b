package worker

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/labels"
	"github.com/warmpath/warmpath/daemon/fleet/measure"
	"github.com/warmpath/warmpath/daemon/fleet/models"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Pool holds the workers of one [[pools]] table. Make it with New; it is safe for concurrent use. Its methods take the
// lock, let the fleet decide, and announce the changes after they have released the lock.
type Pool struct {
	later    func(d time.Duration, f func(now time.Time))
	set      atomic.Pointer[settings] // as fleet.conf, for readers without the lock
	labels   atomic.Pointer[labels.Set]
	announce announcer
	budget   *judge.Budget
	count    atomic.Int32                      // of the fleet's workers
	served   atomic.Pointer[map[string]string] // the least name of each model that has several; nil = none has

	mu    sync.Mutex // guards fleet except fleet.began, and the fields of Worker and request that name it
	fleet fleet
}

// New makes a pool. A worker is up only after its first good health check.
func New(c Config, now time.Time) *Pool {
	c = c.withDefaults()
	p := &Pool{later: c.After, announce: announcer{c.Log, c.Caches, c.OnChange}, budget: judge.NewBudget()}
	p.fleet = fleet{began: now, early: map[string]bool{}, watcher: c.Watcher, grace: p,
		speed: measure.FleetSlowness{Value: 1}, taken: map[uint32]*Worker{}, watched: map[uint64]*endpoint{}}
	p.fleet.conf = newSettings(c)
	p.set.Store(p.fleet.conf)
	p.fleet.labels = &labels.Set{}
	p.Update(c.Workers, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fleet.running = true
	return p
}

// unlock releases the lock and announces what changed while it was held.
func (p *Pool) unlock() {
	events := p.fleet.events
	p.fleet.events = nil
	room := p.fleet.conf.Room
	seen, publish := p.fleet.sharing.inHurry()
	if set := p.fleet.labels; set != p.labels.Load() {
		p.labels.Store(set)
	}
	if n := int32(len(p.fleet.workers)); n != p.count.Load() {
		p.count.Store(n)
	}
	p.mu.Unlock()
	if publish != nil {
		publish(seen)
	}
	if len(events) > 0 {
		p.announce.announce(events)
		room.MayHaveCome()
	}
}

// unlockWithRoom is unlock after what may have made room.
func (p *Pool) unlockWithRoom() {
	defer p.fleet.conf.Room.MayHaveCome()
	p.unlock()
}

// Configure replaces intervals, limits, budget and prefill speed at once, and keeps all state of the workers. It
// ignores Workers and the fields that Config reserves for New.
func (p *Pool) Configure(c Config) {
	p.mu.Lock()
	was, next := p.fleet.conf, newSettings(c.withDefaults())
	defer was.Room.MayHaveCome() // what waits by the old settings goes by the new ones now
	defer p.unlockWithRoom()
	// The learnt slowness is seconds over estimated seconds: when the estimate changes, the product stays.
	p.fleet.speed.Value = measure.Bound(p.fleet.speed.Value * was.c1 / next.c1)
	p.fleet.conf = next
	p.set.Store(next)
}

// Update makes specs the configured workers. A worker with the same id and URLs keeps its slot and all its state. A
// worker that is missing from specs gets no more requests, and its requests run to their end.
func (p *Pool) Update(specs []Spec, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	p.fleet.update(specs, p.fleet.clock(now))
	p.served.Store(models.SameModels(p.fleet.listings()))
}

// Drain takes a worker out of the snapshots, or puts it back. Its requests run to their end. id is that of a worker;
// the configured id of several data-parallel ranks means all of them. Drain reports whether there is such a worker.
func (p *Pool) Drain(id string, on bool, now time.Time) bool {
	p.mu.Lock()
	defer p.unlock()
	return p.fleet.drain(id, on, p.fleet.clock(now))
}

// Holders returns who waits for the answers of a worker, the oldest request first. id is as for Drain.
func (p *Pool) Holders(id string) (all []Holder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.fleet.at(id)
	if e == nil {
		return nil
	}
	for _, w := range e.ranks {
		for r := w.flight.First; r != nil && (e.name == id || w.ID() == id); r = r.inFlight.Next {
			if r.holder != nil {
				r.Called = true // nobody else gets its memory
				all = append(all, r.holder)
			}
		}
	}
	return all
}

// Drains returns the calls of Drain that are still in force, by worker: true is a drain, false the end of a drain that
// the worker's Spec sets. Drain of another pool of the same workers takes them.
func (p *Pool) Drains() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.drains()
}

// Snapshot appends a row for each worker that can take the request, and the Workers themselves, in order of slot.
// Such a worker is up, awake and not draining, its breaker is closed or ready for a trial, it has room and fewer
// requests than it refused at of late, it has its turn if it starts slowly, and it lists the model. If there is none,
// workers that refused a request recently get a row. If there are none of these, suspected workers do. Until its
// models were read, any model fits a worker. The rows lack the fields that depend on the prompt: the prefix index
// fills Predicted, GPU, L1, L2, FreeGPU, FreeL1, ReuseGPU and ReuseL1 by the row's slot.
//
// With Query.Few only candidates have rows, in a pool of more than 32 workers that may serve the request.
//
// The Standing is Ready or Panicked if there are rows. Otherwise it is the reason for their absence: Full, Starting,
// Down, Lacking or Fenced. Snapshot does not allocate if rows and ws have the capacity.
func (p *Pool) Snapshot(q Query, rows []abi.Row, ws []*Worker) ([]abi.Row, []*Worker, Standing) {
	p.mu.Lock()
	defer p.unlock()
	now := p.fleet.clock(q.At)
	s := shot{Query: q, fleet: &p.fleet, moment: moment{now: now}, among: p.fleet.workers, lists: true, rows: rows,
		workers: ws}
	s.inside = p.fleet.labels.Mask(q.Fence)
	s.adapter = isAdapter(&p.fleet, q.Model)
	some := s.takeSome()
	if !some {
		s.moment, s.weight = p.fleet.advance(now), 0
		s.take()
		s.askOutside()
		s.takeShort()
	}
	if q.Count != nil {
		*q.Count = s.count()
		q.Count.Hidden = (s.hidden || some) && len(s.workers) > len(ws)
		q.Count.Next = s.turn
	}
	if q.Means != nil {
		s.describe(len(s.workers) - len(ws))
	}
	return s.rows, s.workers, s.standing
}

// IsPart reports whether there may be more workers than those of the pool: Config.Outside.
func (p *Pool) IsPart() bool { return p.set.Load().Outside != nil }

// Began returns when the pool was made.
func (p *Pool) Began() time.Time { return p.fleet.began }

// IsLarge reports whether the pool is large enough for Query.Few to leave workers out.
func (p *Pool) IsLarge() bool { return p.count.Load() > allOf }

// Standing returns what the worker with that id can do for a request of the model that is bound to it. A worker
// outside of the request's fence is Gone, like a worker that has left the pool.
func (p *Pool) Standing(id, model string, fence Fence, now time.Time) Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.fleet.find(id)
	switch {
	case w == nil:
		return p.fleet.absence(id)
	case !w.inside(fence):
		return Gone
	}
	if isAdapter(&p.fleet, model) && loads(&p.fleet, w.url, model) { // it need not be listed
		model = ""
	}
	return w.standing(model, &p.fleet.conf.limits, &moment{now: p.fleet.clock(now), slowness: p.fleet.speed.Value})
}

// FailsAlone reports whether a failed answer of w is blamed on w, not on the request: w fails often, and the other
// workers that are up fail far less.
func (p *Pool) FailsAlone(w *Worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.failsAlone(w.endpoint)
}

// Saturated reports whether no worker that is up has room, so that Snapshot would return Full for any model. It is
// false if none is up.
func (p *Pool) Saturated(now time.Time) bool {
	if !p.set.Load().limits.any() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.saturated(p.fleet.clock(now))
}

// RetryAfter returns in how many seconds a client is to come back that found no worker with a place, from 1 to 60: what
// it measures of the answers at the workers says when one will be free.
func (p *Pool) RetryAfter(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.places.Whole(p.fleet.places.Wait(p.fleet.clock(now), p.fleet.up > 0))
}

// Others appends the workers inside of the fence without a row to into, at most limit of them. rows are those of a
// Snapshot. If every worker has a row, Others only compares two lengths.
func (p *Pool) Others(rows []abi.Row, fence Fence, now time.Time, into []Stats, limit int) []Stats {
	if int(p.count.Load()) == len(rows) {
		return into
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	next := 0
	var m moment // made for the first worker without a row
	inside := p.fleet.labels.Mask(fence)
	for _, w := range p.fleet.workers {
		if next < len(rows) && rows[next].Worker == w.slot {
			next++
			continue
		}
		if !inside.Admit(w.labels) {
			continue
		}
		if len(into) < limit && !slices.ContainsFunc(rows, func(r abi.Row) bool { return r.Worker == w.slot }) {
			if m.now == 0 {
				m = p.fleet.advance(p.fleet.clock(now))
			}
			into = append(into, w.stats(&m, &p.fleet.conf.limits))
		}
	}
	return into
}

// Request counts a client's request, which earns its share of a repeat. Call it once a request, not for repeats.
func (p *Pool) Request(now time.Time) { p.budget.Earn(p.set.Load().RetryBudget, now) }

// MayRetry takes one repeat from the budget and reports whether there was one. Call it before a request that has
// reached one worker is sent to another. A refused connection needs no budget: the worker has received nothing, and is
// down for all others from then on, so it costs each request at most one dial a worker.
func (p *Pool) MayRetry(now time.Time) bool { return p.budget.Spend(now) }

// C1 returns the estimated seconds of prefill a token, on a worker of slowness 1.
func (p *Pool) C1() float64 { return p.set.Load().c1 }

// C2 returns the further seconds a token for each token before it: attention costs as much as the rest at
// abi.AttentionTokens.
func (p *Pool) C2() float64 { return p.set.Load().c2 }

// Estimate returns the seconds of prefill on a worker of slowness 1 for a prompt of tokens, cached of which are cached.
func (p *Pool) Estimate(tokens, cached int) float64 { return p.set.Load().estimate(tokens, cached) }

// Labels returns the different labels of the workers, each as name=value, by their bit in Row.Labels. The epoch changes
// with the names. The caller must not change the slice.
func (p *Pool) Labels() (names []string, epoch uint32) {
	l := p.labels.Load()
	return l.Names, l.Epoch
}

// LabelsOf returns a worker's labels of these names, each as name=value.
func (p *Pool) LabelsOf(w *Worker, names ...string) (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		all = append(all, name+"="+w.named[name])
	}
	return all
}

// Place counts a session that was given to a worker without a request to it. Else many openings in a row, which send
// nothing, would all find the same worker the least used.
func (p *Pool) Place(w *Worker, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.missed++
	p.fleet.rates.Place(&w.share, p.fleet.clock(now))
}

// Lambda returns the requests sent per second and worker that is up: the average over 30 s, or half of the newest rate
// if that is more.
func (p *Pool) Lambda(now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.rates.Lambda(p.fleet.clock(now), p.fleet.up)
}

// Prefill returns the mean seconds of prefill of the requests that all routers have sent of late, also to workers that
// are down by now. It returns false if hardly one was sent within the last half minute.
func (p *Pool) Prefill(now time.Time) (mean float64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.rates.Prefill(p.fleet.clock(now))
}

// Stats describes all workers, in order of slot.
func (p *Pool) Stats(now time.Time) []Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.fleet.advance(p.fleet.clock(now))
	out := make([]Stats, len(p.fleet.workers))
	for i, w := range p.fleet.workers {
		out[i] = w.stats(&m, &p.fleet.conf.limits)
		out[i].Last = p.fleet.lastResort(w)
	}
	return out
}

// Counts returns the counts of the pool as a whole.
func (p *Pool) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := Counts{Panics: p.fleet.panics, RetriesRefused: p.budget.Denied()}
	for _, w := range p.fleet.workers {
		c.Preempts += w.totals.preempts
	}
	return c
}

// Up returns the number of workers that get requests. If none does, those that are only suspected get them.
func (p *Pool) Up(now time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, suspected := p.fleet.clock(now), 0
	for _, w := range p.fleet.workers {
		if w.takes(at) {
			n++
		} else if p.fleet.lastResort(w) {
			suspected++
		}
	}
	return cmp.Or(n, suspected)
}

// Takers returns the ids of the workers that take requests: they are up and awake, and do not drain.
func (p *Pool) Takers(now time.Time) (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.fleet.clock(now)
	for _, w := range p.fleet.workers {
		if w.takes(at) {
			ids = append(ids, w.id)
		}
	}
	return ids
}

// Prefills reports whether a request at a worker waits for its first byte.
func (p *Pool) Prefills(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.fleet.find(id)
	return w != nil && w.queue.tokens > 0
}

// At returns the configured worker of a slot, or nil.
func (p *Pool) At(slot uint32) *Worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.fleet.workers {
		if w.slot == slot {
			return w
		}
	}
	return nil
}

// InFlight counts the requests at each worker by id, also at removed workers until their last request has ended.
func (p *Pool) InFlight() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := make(map[string]int, len(p.fleet.taken))
	for _, w := range p.fleet.taken {
		n[w.id] += w.flight.n
	}
	return n
}

// beginGrace begins the grace for the requests in flight at w, which has just gone down or fallen silent. A process
// that shuts down closes its port first and may answer its requests for as long as it likes, so the pool does not give
// a silent request up at once. A process that hangs in its shutdown keeps its connections open, so without an end to
// the grace a request would wait for header_timeout. The caller holds p.mu.
func (p *Pool) beginGrace(w *Worker) {
	if w.flight.n == 0 {
		return
	}
	fell := w.health.Fell()
	p.later(p.fleet.graceOf(w.endpoint), func(now time.Time) { p.giveUp(w, fell, now) })
}

// giveUp calls the holders whose grace is over, and runs again when the next grace ends. A worker that came up again
// has ended the grace, and its next fall begins another. While no worker is up and Config.Panic is set, giveUp calls
// none: the health checks are not trusted then.
func (p *Pool) giveUp(w *Worker, fell time.Duration, now time.Time) {
	at := p.fleet.clock(now)
	p.mu.Lock()
	f := &p.fleet
	var late []Holder
	var next time.Duration
	dead, why := w.health.IsDead(), Mute
	if dead {
		why = Dead
	}
	if w.health.Fell() == fell {
		late, next = w.flight.overdue(&w.health, f.graceOf(w.endpoint), at, func(r *request) bool {
			return dead || r.First == 0 && f.takesElsewhere(r, w.endpoint, at)
		})
		if !dead && f.conf.limits.any() && len(late) > 1 { // there may be a single free place
			late = late[:1]
		}
		if next == 0 && !dead && w.flight.n > 0 {
			next = at + askAgain // another worker may come up
		}
	}
	believed := !f.conf.Panic || f.up > 0
	p.mu.Unlock()
	if believed {
		for _, h := range late {
			h.GiveUp(why)
		}
	}
	if next > 0 {
		p.later(max(time.Millisecond, next-at), func(then time.Time) { p.giveUp(w, fell, then) })
	}
}

// beginClearing has the requests that wait at w, whose engine does nothing, go to other workers. The caller holds p.mu.
func (p *Pool) beginClearing(w *Worker) {
	if !w.clearing {
		w.clearing = true
		p.later(time.Millisecond, func(now time.Time) { p.clear(w, now) })
	}
}

// clear calls the holders of the requests that may leave w, and again each second until its engine goes on.
func (p *Pool) clear(w *Worker, now time.Time) {
	f, at := &p.fleet, p.fleet.clock(now)
	var leave []Holder
	why := Mute
	p.mu.Lock()
	if w.engine.IsAsleep() {
		why = Resting
	}
	w.clearing = w.isUp() && w.flight.n > 0 && (w.engine.IsAsleep() || w.engine.IsStill())
	for r := w.flight.First; r != nil && w.clearing; r = r.inFlight.Next {
		if r.holder != nil && w.engine.MayMove(&w.health, &r.Request, f.conf.ScrapeInterval) &&
			f.takesElsewhere(r, w.endpoint, at) {
			r.Called = true
			leave = append(leave, r.holder)
		}
		if f.conf.limits.any() && len(leave) > 0 { // there may be a single free place
			break
		}
	}
	again := w.clearing
	p.mu.Unlock()
	for _, h := range leave {
		h.GiveUp(why)
	}
	if again {
		p.later(askAgain, func(then time.Time) { p.clear(w, then) })
	}
}

// giveUpTrial has a trial go to another worker that has had no byte for so long, although the worker answers its health
// checks: it is a client's request, and at an engine that hangs it would wait until the client leaves.
func (p *Pool) giveUpTrial(w *Worker, r *request, now time.Time) {
	at := p.fleet.clock(now)
	p.mu.Lock()
	waits := w.engine.WaitsInVain(&w.health, &r.Request) && p.fleet.takesElsewhere(r, w.endpoint, at)
	r.Called = r.Called || waits
	p.mu.Unlock()
	if waits {
		r.holder.GiveUp(Mute)
	}
}
