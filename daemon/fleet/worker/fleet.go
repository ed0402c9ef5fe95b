package worker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/labels"
	"github.com/warmpath/warmpath/daemon/fleet/measure"
	"github.com/warmpath/warmpath/daemon/fleet/models"
	"github.com/warmpath/warmpath/daemon/fleet/order"
	"github.com/warmpath/warmpath/sdk/abi"
)

// fleet holds the workers of a pool and their common state. The pool's lock guards all of it.
type fleet struct {
	began   time.Time
	watcher Watcher
	grace   grace
	conf    *settings // in force
	running bool      // New has returned: a worker that is added from now on starts slowly

	endpoints []*endpoint          // as configured
	workers   []*Worker            // the ranks of all endpoints, in order of slot
	keyed     map[uint64]*Worker   // the same by key, for the records of other routers
	taken     map[uint32]*Worker   // by slot, also removed workers whose last request has not ended
	full      uint32               // all slots below it are taken
	watched   map[uint64]*endpoint // by number, also removed ones whose workers have requests
	numbers   uint64               // of endpoints, given so far
	requests  uint64               // numbers of requests, given so far
	compared  time.Duration        // when a refusal of a trusted worker was last compared; 0 = never
	up        int                  // workers that are up

	speed     measure.FleetSlowness
	usual     measure.Usual
	elsewhere float64 // requests from elsewhere that each worker has at least
	calmest   *Worker // that has so many; nil = none yet
	rates     measure.Rates
	places    measure.Places
	labels    *labels.Set
	asked     time.Duration   // when all workers were last asked for their models: a request wanted one that none lists
	panicked  bool            // no worker was up when a request came, and none has come up since
	panics    uint64          // requests that were given workers that are not up
	early     map[string]bool // calls of drain for workers that are added because of them
	events    []event
	adapters  bool         // some worker lists LoRA adapters
	mixed     bool         // some workers list other models than others, or did
	loading   measure.Mean // seconds of an adapter's load
	cohorts   []*cohort    // see candidates.go
	round     uint64       // of candidates: Worker.round
	some      []*Worker    // memory for candidates
	passing   request      // the request of a PassForeign call; it is in no queue between two calls
	sharing   sharing
}

// grace gives up the requests in flight at a worker that will not answer them.
type grace interface {
	beginGrace(w *Worker)    // it went down or fell silent
	beginClearing(w *Worker) // it does nothing
}

// clock returns the time since the pool began, and at least a nanosecond: 0 means never.
func (f *fleet) clock(t time.Time) time.Duration { return max(1, t.Sub(f.began)) }

// note records a change of w, which Pool.unlock announces.
func (f *fleet) note(w *Worker, e event, now time.Duration) { f.noteAll([]*Worker{w}, e, now) }

// noteAll records a change of all ranks of an endpoint as one event.
func (f *fleet) noteAll(ranks []*Worker, e event, now time.Duration) {
	e.of = ranks
	f.events = append(f.events, e)
	for _, w := range ranks {
		f.moved(w, now)
		switch e.kind {
		case reweighed, weighedBack:
			if !e.keeps {
				w.empty(now)
			}
		case slept, emptied:
			w.empty(now)
		}
		if s, _ := w.condition(); s != w.shownAs || w.since.IsZero() || e.kind == restarted {
			w.shownAs = s
			w.since = f.began.Add(now)
		}
	}
}

// update makes specs the configured endpoints.
func (f *fleet) update(specs []Spec, now time.Duration) {
	old := make(map[string]*endpoint, len(f.endpoints))
	for _, e := range f.endpoints {
		old[e.name] = e
	}
	var next, fresh, turned []*endpoint
	seen := map[string]bool{}
	for i := range specs {
		at, err := identify(specs[i])
		if err == nil && seen[at.name] {
			err = fmt.Errorf("worker: two workers are named %q; give each its own id", at.name)
		}
		if err != nil {
			f.events = append(f.events, event{kind: rejected, why: err.Error()})
			continue
		}
		seen[at.name] = true
		e := old[at.name]
		if e != nil && e.sameAs(&at) {
			delete(old, at.name)
		} else {
			e = &endpoint{address: at}
			fresh = append(fresh, e)
		}
		if e.spec.Drain != specs[i].Drain {
			turned = append(turned, e)
		}
		was := e.spec.Labels[weightsLabel]
		e.spec = specs[i]
		if is := e.spec.Labels[weightsLabel]; is != was {
			f.weigh(e, WeightsNamed(is), false, now)
		}
		e.setLabels(e.version())
		next = append(next, e)
	}
	for _, e := range old {
		f.remove(e, now)
	}
	f.endpoints = next
	f.relabel()
	for _, e := range fresh {
		f.add(e)
	}
	for _, e := range next {
		f.adopt(e, now)
	}
	f.listWorkers()
	for _, e := range turned {
		f.drain(e.name, e.spec.Drain, now)
	}
	for _, e := range fresh {
		if f.early[e.name] {
			delete(f.early, e.name)
			f.drain(e.name, true, now)
		}
	}
}

// add gives an endpoint a number and starts its watch.
func (f *fleet) add(e *endpoint) {
	f.numbers++
	e.number = f.numbers
	f.watched[e.number] = e
	if f.running {
		e.health.Join()
	}
	f.watcher.Watch(e.number, e.url, e.metrics)
}

// adopt applies the parts of an endpoint's spec that may change while it stays.
func (f *fleet) adopt(e *endpoint, now time.Duration) {
	for _, w := range e.ranks {
		if w.adopt(f.labels) {
			f.note(w, event{kind: resized, tokens: w.capacity.inForce}, now)
		}
	}
	n := e.spec.DataParallel
	if n == 0 {
		n = max(1, len(e.ranks))
	}
	f.setRanks(e, n, now)
}

// setRanks makes n the number of an endpoint's ranks. The ranks that stay keep their Workers with all state. A single
// rank has another id than each of several, so none stays where one becomes several or several become one. The caller
// calls listWorkers.
func (f *fleet) setRanks(e *endpoint, n int, now time.Duration) {
	n = min(n, MaxRanks)
	was := len(e.ranks)
	if n == was {
		return
	}
	stay := min(n, was)
	if n == 1 || was == 1 {
		stay = 0
	}
	gone := e.ranks[stay:]
	e.ranks = slices.Clone(e.ranks[:stay])
	for _, w := range gone {
		f.removeRank(w, "the worker has another number of data-parallel ranks", now)
	}
	for r := stay; r < n; r++ {
		e.ranks = append(e.ranks, e.newRank(r, n))
		f.addRank(e.ranks[r], now)
	}
}

// listWorkers rebuilds the list of all workers after ranks have come or gone.
func (f *fleet) listWorkers() {
	f.workers = f.workers[:0:0]
	for _, e := range f.endpoints {
		f.workers = append(f.workers, e.ranks...)
	}
	f.regroup()
	f.rates.Hold(len(f.workers))
	slices.SortFunc(f.workers, func(a, b *Worker) int { return cmp.Compare(a.slot, b.slot) })
	f.keyed = make(map[uint64]*Worker, len(f.workers))
	for _, w := range f.workers {
		f.keyed[w.key] = w
	}
	slices.SortStableFunc(f.events, func(a, b event) int { return cmp.Compare(a.kind, b.kind) })
}

// addRank gives w a slot. A rank that joins an endpoint that is up starts slowly: its engine is as cold as its queue is
// empty.
func (f *fleet) addRank(w *Worker, now time.Duration) {
	for f.taken[f.full] != nil {
		f.full++
	}
	w.slot = f.full
	f.taken[w.slot] = w
	w.adopt(f.labels)
	if w.isUp() {
		f.up++
		f.startSlow(w, now)
	}
	f.note(w, event{kind: registered, tokens: w.capacity.inForce}, now)
}

// remove ends an endpoint's part in the pool. The caller deletes it from f.endpoints.
func (f *fleet) remove(e *endpoint, now time.Duration) {
	e.place = leftOver
	if e.inFlight > 0 {
		f.watcher.WatchHealth(e.number)
	}
	e.health.Close()
	for _, w := range e.ranks {
		f.removeRank(w, "", now)
	}
}

// removeRank ends w's part in the pool. The caller deletes w from its endpoint's ranks and calls listWorkers.
func (f *fleet) removeRank(w *Worker, why string, now time.Duration) {
	w.place = leftOver
	if w.isUp() {
		f.up--
	}
	w.queue.clear()
	f.note(w, event{kind: removed, why: why, tokens: w.flight.n}, now)
	f.release(w)
}

// release frees a removed worker's slot after its last request, and reports whether it did. A removed endpoint is
// watched until the last request at any of its ranks.
func (f *fleet) release(w *Worker) bool {
	if w.flight.n > 0 || w.place != leftOver {
		return false
	}
	w.place = freed
	delete(f.taken, w.slot)
	f.full = min(f.full, w.slot)
	if e := w.endpoint; e.place == leftOver && e.inFlight == 0 {
		e.place = freed
		f.watcher.Unwatch(e.number)
		delete(f.watched, e.number)
	}
	return true
}

// find returns the configured worker of that id, or nil.
func (f *fleet) find(id string) *Worker {
	i := slices.IndexFunc(f.workers, func(w *Worker) bool { return w.id == id })
	if i < 0 {
		return nil
	}
	return f.workers[i]
}

// at returns the configured endpoint with the name id, or the one whose rank id names, even a rank that it does not
// have, or nil.
func (f *fleet) at(id string) *endpoint {
	name, _, _ := strings.Cut(id, rankMark)
	i := slices.IndexFunc(f.endpoints, func(e *endpoint) bool { return e.name == name })
	if i < 0 {
		return nil
	}
	return f.endpoints[i]
}

// absence returns the standing of an id that no worker has. A rank of an endpoint that was never up is not Gone: its
// number of ranks is not known yet. Nor is a worker that is added because it was asked for.
func (f *fleet) absence(id string) Standing {
	e := f.at(id)
	if e != nil && e.health.WasNeverUp() {
		return e.standing()
	}
	name, _, _ := strings.Cut(id, rankMark)
	if e == nil && f.conf.Outside != nil && f.conf.Outside(Want{ID: name}) {
		return Starting
	}
	return Gone
}

// allOf is how many workers a request has as candidates in any case.
const allOf = 32

// maxCohorts bounds the fences whose workers are kept in order. A request of a further one has all as candidates.
const maxCohorts = 8

// cohort is the workers that a fence admits, in order of load if they are more than allOf. A worker's place is found
// anew when a request begins, gets its first byte or ends there. What changes by itself is looked at in turn.
type cohort struct {
	fence   Fence
	members []*Worker // in order of slot
	order   order.Set[*Worker]
	next    int           // member that is looked at next
	looked  time.Duration // when the last one was
}

// regroup drops all cohorts: the workers or their labels have changed.
func (f *fleet) regroup() {
	for _, g := range f.cohorts {
		for _, w := range g.members {
			w.seats = nil
		}
	}
	f.cohorts = nil
}

// cohortOf returns the workers inside of a fence, nil if there are too many cohorts.
func (f *fleet) cohortOf(fence Fence, m *moment) *cohort {
	if i := slices.IndexFunc(f.cohorts, func(g *cohort) bool { return slices.Equal(g.fence, fence) }); i >= 0 {
		return f.cohorts[i]
	}
	if len(f.cohorts) >= maxCohorts {
		return nil
	}
	g, inside := &cohort{fence: slices.Clone(fence)}, f.labels.Mask(fence)
	for _, w := range f.workers {
		if inside.Admit(w.labels) {
			g.members = append(g.members, w)
		}
	}
	f.cohorts = append(f.cohorts, g)
	if len(g.members) > allOf {
		for _, w := range g.members {
			w.seats = append(w.seats, g.order.Join(w))
			f.place(w, m)
		}
	}
	return g
}

// seat returns the worker's place in a cohort, nil if it has none.
func (w *Worker) seat(g *cohort) *order.Seat[*Worker] {
	for _, s := range w.seats {
		if s.Set == &g.order {
			return s
		}
	}
	return nil
}

// moved finds the places of w anew: its load has changed.
func (f *fleet) moved(w *Worker, now time.Duration) {
	if len(w.seats) > 0 {
		m := f.moment(now)
		f.place(w, &m)
	}
}

func (f *fleet) place(w *Worker, m *moment) {
	var r abi.Row
	w.fill(&r, m)
	now := m.shared()
	lately := math.Log(w.share.Requests/max(w.weight, 1e-9)) + now.Time/measure.Window + math.Log(m.back)
	for _, s := range w.seats {
		s.Put(&r, w.takes(m.now), now, lately)
	}
}

// shared returns what changes all rows alike.
func (m *moment) shared() order.Now {
	return order.Now{Time: measure.InSeconds(m.now), Slow: m.slowness, Back: m.back}
}

// round is the time in which each worker of a cohort is looked at, while requests come.
const round = 250 * time.Millisecond

// look looks at the next members for what changes by itself, some for each request.
func (f *fleet) look(g *cohort, m *moment) {
	n := int(float64(len(g.members)) * float64(m.now-g.looked) / float64(round))
	if n == 0 {
		return
	}
	g.looked = m.now
	for range min(n, allOf) {
		g.next = (g.next + 1) % len(g.members)
		w := g.members[g.next]
		f.settle(w, m.now)
		f.place(w, m)
	}
}

// moment returns what rows of that time share.
func (f *fleet) moment(now time.Duration) moment {
	stale := 3 * max(f.conf.ScrapeInterval, f.leastPause())
	return moment{now: now, stale: stale, slowness: f.speed.Value, back: f.rates.Back(now), elsewhere: f.elsewhere}
}

// advance brings all averages and queues up to the time at, and returns what the rows of that time share. It advances
// all workers before the first row is filled: a sample in one queue changes the fleet's speed, so rows of equal workers
// would differ otherwise.
func (f *fleet) advance(at time.Duration) moment {
	f.age(at)
	for _, w := range f.workers {
		f.settle(w, at)
	}
	return f.moment(at)
}

// budget is the number of questions of each kind that this router asks the workers of a pool in a second. At 0.3 ms a
// question it is a third of a core.
const budget = 500

// leastPause returns the pause between two questions to a worker at which the budget suffices for all, 0 if their
// intervals are longer.
func (f *fleet) leastPause() time.Duration {
	pause := time.Duration(len(f.watched)) * time.Second / time.Duration(budget*(1+len(f.sharing.others)))
	if pause < f.conf.ScrapeInterval {
		return 0
	}
	return pause
}

// age makes averages fade and speeds drift, once a second.
func (f *fleet) age(now time.Duration) {
	dt := f.rates.Age(now)
	if dt == 0 {
		return
	}
	fade := math.Exp(-dt / measure.Window)
	for _, w := range f.workers {
		w.share.Fade(fade)
	}
	for _, g := range f.cohorts {
		g.order.Fade(fade)
	}
	f.fadeSpeeds(math.Exp(-dt/measure.DriftTime.Seconds()), now)
}

// settle brings w's queue up to now: a complete group of first bytes becomes a sample, and answers in one piece whose
// time is over leave.
func (f *fleet) settle(w *Worker, now time.Duration) {
	if x, ok := w.queue.sample(now); ok {
		f.speed.Learn(&w.speed, x)
	}
	w.queue.expire(now, f.speed.Value*w.speed.Times())
}

// begin counts a request to w.
func (f *fleet) begin(w *Worker, r *request) {
	f.age(r.Sent)
	f.settle(w, r.Sent)
	f.rates.Add(&w.share, r.est*f.speed.Value*w.speed.Times(), r.Sent)
	f.wake(w.endpoint)
	w.begin(r)
	if !r.coming {
		f.enqueue(w, r)
	}
	r.adapts = r.adapts && w.uses.Begin(r.model, r.Sent) != nil
	f.places.Begin(r.Sent, r.talks)
	w.noteKnown(r.Sent)
	f.moved(w, r.Sent)
}

// wake has a worker asked at once that gets its first request after a while: what is known of it may be old.
func (f *fleet) wake(e *endpoint) {
	if e.idle {
		e.idle = false
		f.watcher.ScrapeSoon(e.number)
		f.watcher.CheckSoon(e.number)
	}
}

// enqueue counts a request among those that w has to prefill.
func (f *fleet) enqueue(w *Worker, r *request) {
	r.quick = w.queue.First == nil && r.est*f.speed.Value <= measure.QuickWork && !r.Paired
	w.health.Sent(&r.Request)
	w.queue.push(r)
}

func (f *fleet) beginForeign(w *Worker, r *request, seen bool) {
	if seen {
		f.age(r.Sent)
		f.settle(w, r.Sent)
		f.rates.Add(&w.share, r.est*f.speed.Value*w.speed.Times(), r.Sent)
		w.slowStart.Spend()
		w.theirs.sent++
	}
	if f.sharing.asks(w.endpoint.ranks[0].key) {
		f.wake(w.endpoint)
	}
	w.theirs.n++
	w.theirs.tokens += r.tokens
	w.endpoint.theirs++
	w.queue.push(r)
	w.noteKnown(r.Sent)
	f.moved(w, r.Sent)
}

// weight returns the sum of the weights of all workers that are up.
func (f *fleet) weight() (sum float64) {
	for _, w := range f.workers {
		if w.isUp() {
			sum += w.weight
		}
	}
	return max(sum, 1e-9)
}

// comparedWith is how many workers a pace is compared with at most: each page of metrics of each worker is compared.
const comparedWith = 64

// compare corrects the relative speeds of workers by the pace of w, which w's metrics measured on n requests. In a
// large fleet these are w and those that follow it.
func (f *fleet) compare(w *Worker, n float64) {
	all := make([]*measure.WorkerSpeed, min(comparedWith, len(f.workers)))
	at := slices.Index(f.workers, w)
	for i := range all {
		all[i] = &f.workers[(max(0, at)+i)%len(f.workers)].speed
	}
	w.speed.Compare(all, n)
}

// failsAlone reports whether a failed answer of e is blamed on e, not on the request.
func (f *fleet) failsAlone(e *endpoint) bool {
	sum, n := 0.0, 0
	for _, o := range f.endpoints {
		if share, any := o.health.Failures(); o != e && o.isUp() && any {
			sum += share
			n++
		}
	}
	return e.health.FailsAlone(sum, n)
}

// saturated reports whether every worker that is up is full. It is false if none is up.
func (f *fleet) saturated(now time.Duration) bool {
	some, m := false, moment{now: now, slowness: f.speed.Value}
	for _, w := range f.workers {
		if !w.isUp() || w.closed() {
			continue
		}
		if !w.full(&f.conf.limits, &m) {
			return false
		}
		some = true
	}
	return some
}

// list records the models of an endpoint. Endpoints with equal listings share one.
func (f *fleet) list(e *endpoint, l *models.Listing, entries []json.RawMessage) {
	e.health.NoteSuccess(judge.ByModels)
	e.deniesKey, e.entries = false, entries
	if e.listing == nil || !e.listing.Equal(l) {
		e.listing = l
	}
	f.adapters, f.mixed = false, false
	for _, o := range f.endpoints {
		if o.listing != nil && o.listing.Equal(l) {
			e.listing = o.listing
		}
		f.adapters = f.adapters || o.listing != nil && len(o.listing.Adapters) > 0
		f.mixed = f.mixed || o.listing != nil && !o.listing.Equal(l)
	}
	for _, w := range e.ranks {
		w.uses.Keep(e.listing)
	}
}

// listings returns the listing of each endpoint, nil where it was not read yet.
func (f *fleet) listings() []*models.Listing {
	all := make([]*models.Listing, len(f.endpoints))
	for i, e := range f.endpoints {
		all[i] = e.listing
	}
	return all
}

// List is what some workers list: their models' ids, and the first worker's entries of /v1/models. It is not changed.
type List struct {
	IDs     []string
	Entries []json.RawMessage
	of      *models.Listing
}

// Renews reports whether the list has the models of another one. Then the entries are the same, except for times and
// similar fields.
func (l List) Renews(o List) bool { return l.of == o.of }

// Same reports whether nothing has been read anew since.
func (l List) Same(o List) bool {
	return l.of == o.of && len(l.Entries) == len(o.Entries) && (len(l.Entries) == 0 || &l.Entries[0] == &o.Entries[0])
}

// lists returns each list of the workers that are up and inside of the fence.
func (f *fleet) lists(fence Fence) (all []List) {
	seen := map[*models.Listing]bool{nil: true}
	for _, w := range f.workers {
		if !seen[w.listing] && w.isUp() && w.inside(fence) {
			seen[w.listing] = true
			all = append(all, List{IDs: w.listing.IDs, Entries: w.entries, of: w.listing})
		}
	}
	return all
}
