package worker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/models"
)

// This file takes in the results of a Watcher, by the number that Watcher.Watch gave. A number that is no longer
// watched belongs to a worker that has left, and its result is ignored.

// Phase is what a Watcher must know of a worker. The zero Phase is that of a worker that is no longer watched.
type Phase struct {
	Up      bool
	Leaving bool // an answer of it showed that it shuts down
	Counts  bool // its number of engines must be reported before its next good health check
	Still   bool // an engine of it does nothing although requests wait, or is paused

	// Rest is the least mean pause between two questions of a kind: of an idle worker whose pool is not small, and of
	// each worker of a pool so large that the budget of questions has no room for more.
	Rest time.Duration

	Checked bool // another router checks its health, and
	Read    bool // reads its metrics: this one need not, unless it was asked to

	// Try is the model of which the worker is to complete a token now: its engine hung. Rank is the value of
	// X-data-parallel-rank, "" = no header. Tried takes the answer.
	Try, Rank string
}

// Phase returns the phase of a worker.
func (p *Pool) Phase(id uint64, now time.Time) Phase {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.fleet.watched[id]
	if e == nil {
		return Phase{}
	}
	a := Phase{Up: e.isUp(), Leaving: e.health.IsGoingAway(),
		Counts: !e.isUp() && e.place == configured && e.learns(), Still: slices.ContainsFunc(e.ranks, mayBePaused)}
	n := len(p.fleet.watched)
	e.idle = n > smallPool && a.Up && !a.Still && e.isIdle()
	a.Rest = p.fleet.leastPause()
	if e.idle {
		a.Rest = max(a.Rest, time.Duration(n)*time.Second/time.Duration(4+n/50))
	}
	p.fleet.follow(e, &a, p.fleet.clock(now))
	switch {
	case !a.Up || !e.health.OwnTrialDue(p.fleet.clock(now)) || e.suspect.engine.IsAsleep() || e.allDrain():
	case e.listing == nil || e.listing.Base() == "":
		e.health.TryOwn(false)
	default:
		a.Try, a.Rank = e.listing.Base(), e.suspect.header
	}
	return a
}

// smallPool is the number of workers up to which all are asked by their intervals. In a larger pool the idle ones
// together are asked 4 times a second, and once more for each 50 workers: each of 64 after 13 s, of 1,000 after 42 s.
const smallPool = 8

// follow sets which questions to a worker other routers answer: none if this router asks it, or if there is something
// wrong with the worker.
func (f *fleet) follow(e *endpoint, a *Phase, now time.Duration) {
	if len(f.sharing.others) == 0 || !a.Up || a.Leaving || a.Still || e.health.IsSetAside() || !e.health.HasPassed() ||
		f.sharing.asks(e.ranks[0].key) {
		return
	}
	a.Checked = isRecent(e.heard.check, max(f.conf.HealthInterval, a.Rest), now)
	a.Read = isRecent(e.heard.page, max(f.conf.ScrapeInterval, a.Rest), now)
}

// publish keeps what this router has seen of a worker for the others.
func (f *fleet) publish(e *endpoint, check int, page *Page) {
	if e.place == configured {
		f.sharing.publish(e.ranks[0].key, check, page)
	}
}

// Share sets which router this one is and which others share the questions to the workers. It returns what was seen
// since the last call. urgent is called, without the pool's lock, with what must not wait for the next call: a bad
// check. Without others nothing is shared.
func (p *Pool) Share(self uint64, others []Sharer, urgent func([]Seen)) []Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.sharing.set(self, others, urgent)
}

// sharedAge is how old a page may be that another router has seen: it sends it within a second.
const sharedAge = 2 * time.Second

// Hear takes what another router has seen.
func (p *Pool) Hear(all []Seen, at time.Time) {
	p.mu.Lock()
	defer p.unlock()
	now := p.fleet.clock(at)
	for _, s := range all {
		w := p.fleet.keyed[s.Key]
		switch {
		case w == nil || w.endpoint.place != configured:
			continue
		case s.Check == checkedBad || !w.isUp():
			p.fleet.watcher.CheckSoon(w.number)
			continue
		}
		if s.Check == checkedGood && w.health.HasPassed() {
			w.heard.check = now
			p.fleet.healthy(w.endpoint, now)
		}
		if s.Page != nil {
			w.heard.page = now
			page := *s.Page
			page.Took = sharedAge
			p.fleet.scraped(w.endpoint, &page, now)
		}
	}
}

// isIdle reports whether no request is at the worker, by the router's count and by its metrics. A worker that sleeps,
// is paused or is set aside is not idle: the router asks it at the usual interval, to see its return soon.
func (e *endpoint) isIdle() bool {
	return !e.health.IsSetAside() && e.inFlight+e.theirs == 0 && !slices.ContainsFunc(e.ranks, func(w *Worker) bool {
		return w.readings.at == 0 || w.readings.Asleep || w.readings.Running+w.readings.Waiting > 0
	})
}

// Tried records the status of the answer to a completion of one token, 0 = no answer came in time. A worker that
// refuses the completion may embed only, or want a client's key: then a client's request is the trial.
func (p *Pool) Tried(id uint64, status int, now time.Time) {
	p.report(id, func(e *endpoint) {
		switch f, at := &p.fleet, p.fleet.clock(now); {
		case !e.health.OwnTrialDue(at): // another process, or an earlier answer
		case status == 200 || e.health.WorksAgain(&e.suspect.engine):
			f.closeBreaker(e, at)
		case status > 0 && status < 500:
			e.health.TryOwn(false)
		default:
			v := judge.Verdict{Cause: judge.Failing, Hangs: true,
				Why: "no byte of any answer, nor a token for the router itself"}
			f.setAside(e.suspect, &v, 0, at)
		}
	})
}

// Counted records how many engines, data-parallel ranks, a worker reports.
func (p *Pool) Counted(id uint64, engines int, now time.Time) {
	p.report(id, func(e *endpoint) { p.fleet.counted(e, engines, p.fleet.clock(now)) })
}

// Healthy records a good health check.
func (p *Pool) Healthy(id uint64, now time.Time) {
	p.report(id, func(e *endpoint) {
		p.fleet.healthy(e, p.fleet.clock(now))
		p.fleet.publish(e, checkedGood, nil)
	})
}

// Silent records a health check without an answer in time.
func (p *Pool) Silent(id uint64, why string, now time.Time) {
	p.failed(id, why, judge.CheckLate, now)
}

// Ill records a health check that was answered by 500 or more.
func (p *Pool) Ill(id uint64, why string, now time.Time) {
	p.failed(id, why, judge.CheckIll, now)
}

// Dead records a health check that proves death: nothing listens.
func (p *Pool) Dead(id uint64, why string, now time.Time) {
	p.failed(id, why, judge.CheckClosed, now)
}

func (p *Pool) failed(id uint64, why string, c judge.Check, now time.Time) {
	p.report(id, func(e *endpoint) {
		if e.isUp() {
			p.fleet.publish(e, checkedBad, nil)
		}
		p.fleet.unhealthy(e, p.fleet.clock(now), why, c)
	})
}

// Unchecked records that no health check could be made. That does not show the worker's health.
func (p *Pool) Unchecked(id uint64, why string, now time.Time) {
	p.report(id, func(e *endpoint) { e.health.NoteError(why, now, judge.ByHealth) })
}

// Listing records that a worker is about to be asked for its models. A list that was requested earlier may be older
// than the change for which ListSoon was called.
func (p *Pool) Listing(id uint64) {
	p.report(id, func(e *endpoint) {
		e.renewal.begun()
		e.adapted = false
	})
}

// Listed records the model ids that a worker lists, each once, and the entry of /v1/models of each. Entries are kept
// for each worker: vLLM writes a new time and a new permission id into each answer. A list that was requested before an
// adapter was loaded or lost is dropped.
func (p *Pool) Listed(id uint64, ids []string, entries []json.RawMessage) {
	l := models.Read(ids, entries)
	p.report(id, func(e *endpoint) {
		if e.adapted {
			return // it would undo the change
		}
		e.renewal.answered()
		was := e.listing
		p.fleet.list(e, l, entries)
		for _, slot := range e.slots {
			for _, name := range slot.gone { // the worker was asked before it had unloaded that
				relist(&p.fleet, e, name, nil)
			}
		}
		if was != nil && was.Others(l) {
			p.fleet.events = append(p.fleet.events, event{of: e.ranks, kind: relisted, why: fmt.Sprintf("%.200s to %.200s",
				strings.Join(was.IDs, ", "), strings.Join(ids, ", "))})
		}
		if e.listing != was {
			p.served.Store(models.SameModels(p.fleet.listings()))
		}
	})
}

// CacheName returns the name under which the workers' caches of a model are known: of several names of one model the
// least, else its own.
func (p *Pool) CacheName(model string) string {
	if same := p.served.Load(); same != nil {
		if name, ok := (*same)[model]; ok {
			return name
		}
	}
	return model
}

// Unlisted records that a worker's models could not be read.
func (p *Pool) Unlisted(id uint64, why string, now time.Time) {
	p.report(id, func(e *endpoint) {
		e.renewal.answered()
		e.health.NoteError(why, now, judge.ByModels)
		e.deniesKey = strings.HasSuffix(why, " 401") || strings.HasSuffix(why, " 403")
	})
}

// Scraped records the figures of a page of metrics.
func (p *Pool) Scraped(id uint64, page Page, now time.Time) {
	p.report(id, func(e *endpoint) {
		if e.place == configured {
			p.fleet.scraped(e, &page, p.fleet.clock(now))
			p.fleet.publish(e, 0, &page)
		}
	})
}

// Unscraped records that a worker's metrics could not be read.
func (p *Pool) Unscraped(id uint64, why string, now time.Time) {
	p.report(id, func(e *endpoint) {
		e.health.NoteError(why, now, judge.ByMetrics)
		if !e.isUp() {
			e.unread = 0
			return
		}
		e.unread++
		if e.unread == unreadLooks {
			p.fleet.noteAll(e.ranks, event{kind: unread, why: why}, p.fleet.clock(now))
		}
	})
}

// report calls take for the endpoint with that number, with the lock held.
func (p *Pool) report(id uint64, take func(e *endpoint)) {
	p.mu.Lock()
	defer p.unlock()
	if e := p.fleet.watched[id]; e != nil {
		take(e)
	}
}

// RenewLists has the models of all workers that are up read anew, unless that was done within the last second.
func (p *Pool) RenewLists(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, at := &p.fleet, p.fleet.clock(now)
	if f.asked > 0 && at-f.asked < renewEvery {
		return
	}
	f.asked = at
	for _, e := range f.endpoints {
		if e.isUp() {
			f.renew(e)
		}
	}
}

// RenewList has the models of w read anew.
func (p *Pool) RenewList(w *Worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.isUp() && w.endpoint.place == configured {
		p.fleet.renew(w.endpoint)
	}
}

// Reachable returns one worker for each address whose worker is up and inside of the fence.
func (p *Pool) Reachable(fence Fence) (all []*Worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	inside := p.fleet.labels.Mask(fence)
	for _, e := range p.fleet.endpoints {
		if e.isUp() && inside.Admit(e.ranks[0].labels) {
			all = append(all, e.ranks[0])
		}
	}
	return all
}

// KeyAt returns abi.Row.Key of the worker in a slot, false if there is none.
func (p *Pool) KeyAt(slot uint32) (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.fleet.taken[slot]
	if w == nil {
		return 0, false
	}
	return w.key, true
}

// Renewing counts the lists that are being read anew, of workers that are up.
func (p *Pool) Renewing() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.fleet.endpoints {
		if e.renews() {
			n++
		}
	}
	return n
}

// Renews reports whether w is up and its list is being read anew.
func (p *Pool) Renews(w *Worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.endpoint.place == configured && w.renews()
}

// Lists reports whether the list of w has been read and has the model.
func (p *Pool) Lists(w *Worker, model string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.listing != nil && w.listing.Has(model)
}

// Slept records that the engines of the endpoint with that id were put to sleep, before their metrics show it. They are
// awake again if the next page of these does not, or by Woke.
func (p *Pool) Slept(id string, now time.Time) { p.setRest(id, judge.Sleeping, now) }

// Paused is Slept for engines that hold their requests. If they have emptied their KV caches, call Emptied too.
func (p *Pool) Paused(id string, now time.Time) { p.setRest(id, judge.Paused, now) }

// Woke records that the engines of the endpoint with that id were woken up or go on, where no page of metrics has
// come since they were put to sleep: a worker may have none. Where metrics are scraped the next page decides, as an
// order may wake a part of an engine.
func (p *Pool) Woke(id string, now time.Time) { p.setRest(id, judge.Awake, now) }

// Order records that an order of the router's is sent to the endpoint with that id: until the caller calls ended, once,
// what the engine answers shows nothing of its rest. It may be older than the order.
func (p *Pool) Order(id string) (ended func(now time.Time)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var engines []*judge.Engine
	if e := p.fleet.at(id); e != nil {
		for _, w := range e.ranks {
			w.engine.Order()
			engines = append(engines, &w.engine)
		}
	}
	return func(now time.Time) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range engines {
			e.Ordered(p.fleet.clock(now))
		}
	}
}

func (p *Pool) setRest(id string, rest judge.Rest, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	e := p.fleet.at(id)
	if e == nil {
		return
	}
	for _, w := range e.ranks {
		if w.engine.MayBeTold(rest) {
			p.fleet.turnIn(w, rest, true, p.fleet.clock(now))
		}
	}
}

// Emptied records that the KV caches of the endpoint with that id were emptied, which no metrics show: what requests
// that were sent before gone leave there is gone too. The engine computes the others then, all of them if gone is zero.
// Engines that run say so themselves in their KV events, at once and in the right order.
func (p *Pool) Emptied(id string, gone, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	e := p.fleet.at(id)
	if e == nil {
		return
	}
	runs := slices.ContainsFunc(e.ranks, func(w *Worker) bool { return !w.engine.IsAsleep() && w.flight.First != nil })
	p.fleet.noteAll(e.ranks, event{kind: emptied, silent: !runs}, p.fleet.clock(now))
	for _, w := range e.ranks {
		w.emptied.Store(0)
		if !gone.IsZero() {
			w.emptied.Store(int64(p.fleet.clock(gone)))
		}
	}
}

// HoldAdapter counts an adapter as used at w until release is called. lacks reports whether w does not list it, so
// that it is to be loaded there. HoldAdapter counts nothing for a model that is not an adapter.
func (p *Pool) HoldAdapter(w *Worker, name string, now time.Time) (release func(), lacks bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lacks = name != "" && w.listing != nil && !w.listing.Has(name)
	if !isAdapter(&p.fleet, name) {
		return func() {}, lacks
	}
	a := w.uses.Begin(name, p.fleet.clock(now))
	if a == nil {
		return func() {}, lacks
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		w.uses.End(a, a.At)
	}, lacks
}

// Slot is whether an adapter gets one at a worker.
type Slot uint8

// What TakeAdapterSlot returns.
const (
	SlotLater Slot = iota // the worker has as many adapters as it may, all in use
	SlotTaken
	SlotNever // the worker is down, or has been removed
)

// TakeAdapterSlot gives a load at w one of most slots, until FreeAdapterSlot is called. It takes as many idle
// adapters off the list as are too many then, those first that were not used for the longest time, and returns their
// names: the caller unloads them. most = 0 means no limit.
func (p *Pool) TakeAdapterSlot(w *Worker, name string, most int) (gone []string, s Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := w.endpoint
	if e.place != configured || e.health.State() == judge.Down {
		return nil, SlotNever
	}
	if most > 0 && e.listing != nil {
		idle, n := e.idleAdapters(name)
		if n-len(idle) >= most {
			return nil, SlotLater
		}
		for ; n >= most; n-- {
			relist(&p.fleet, e, idle[0], nil)
			gone, idle = append(gone, idle[0]), idle[1:]
		}
	}
	e.slots = append(e.slots, slot{name, gone})
	return gone, SlotTaken
}

// FreeAdapterSlot ends the load of an adapter at w, whether it succeeded or not, and has the list of w read again.
func (p *Pool) FreeAdapterSlot(w *Worker, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.slots = slices.DeleteFunc(w.slots, func(s slot) bool { return s.name == name })
	w.adapted = true
	if w.endpoint.place == configured {
		p.fleet.renew(w.endpoint)
	}
}

// AdapterLoaded records that w has loaded an adapter from that path, before its own list shows it. took is 0 if it
// had it before.
func (p *Pool) AdapterLoaded(w *Worker, name, path string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if took > 0 {
		p.fleet.loading.Add(took.Seconds())
	}
	e := w.endpoint
	if e.place != configured || e.listing == nil || e.listing.Has(name) {
		return
	}
	entry := map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "vllm", "root": path,
		"parent": e.listing.Base()}
	raw, _ := json.Marshal(entry)
	relist(&p.fleet, e, name, raw)
}

// LoseAdapter records that w lacks an adapter that it may load, whatever its list says. It returns false for an
// adapter that w may not load. Some lists name adapters like models.
func (p *Pool) LoseAdapter(w *Worker, name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.listing == nil || !loads(&p.fleet, w.url, name) {
		return false
	}
	relist(&p.fleet, w.endpoint, name, nil)
	w.adapted = true
	return true
}

// ListedAnywhere reports whether the list of some worker that is up has the model; past: or that was up.
func (p *Pool) ListedAnywhere(model string, past bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.fleet.endpoints, func(e *endpoint) bool {
		return (past || e.isUp()) && e.listing != nil && e.listing.Has(model)
	})
}
