package worker

import (
	"cmp"
	"slices"
	"time"
)

// This file divides the questions to the workers among routers that share a history. Each worker has one router that
// asks it, by rendezvous hashing, and publishes what it saw. The others follow: they ask a worker themselves only if
// nothing was published of it for two intervals, or if there is a reason to. What a router publishes never takes a
// worker down elsewhere: after a bad check each router checks the worker itself.

// Seen is what a router has seen of a worker since it last published something of it.
type Seen struct {
	Key   uint64 // of the worker, of several ranks the first one's
	Check Checked
	Page  *Page // of metrics; nil = none was read
}

// Checked is the result of a health check for the other routers.
type Checked uint8

// The values of Checked.
const (
	NotChecked Checked = iota
	CheckedGood
	CheckedBad
)

// Share sets which router this one is and which others share the questions to the workers. It returns what was seen
// since the last call. urgent is called, without the pool's lock, with what must not wait for the next call: a bad
// check. Without others nothing is shared.
func (p *Pool) Share(self uint64, others []uint64, urgent func([]Seen)) []Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fleet.self, p.fleet.others, p.fleet.urgent = self, others, urgent
	return p.fleet.takeSeen()
}

// Hear takes what another router has seen.
func (p *Pool) Hear(all []Seen, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	for _, s := range all {
		if w := p.fleet.keyed[s.Key]; w != nil && w.endpoint.place == configured {
			p.fleet.hear(w.endpoint, &s, p.fleet.clock(now))
		}
	}
}

func (f *fleet) hear(e *endpoint, s *Seen, now time.Duration) {
	if s.Check == CheckedBad || !e.isUp() {
		f.watcher.CheckSoon(e.number)
		return
	}
	if s.Check == CheckedGood && e.health.HasPassed() {
		e.checkHeard = now
		f.healthy(e, now)
	}
	if s.Page != nil {
		e.pageHeard = now
		f.scraped(e, s.Page, now)
	}
}

// publish keeps what was seen of a worker until the next Share.
func (f *fleet) publish(e *endpoint, c Checked, page *Page) {
	if len(f.others) == 0 || e.place != configured {
		return
	}
	if e.seen == (Seen{}) {
		f.seen = append(f.seen, e)
	}
	e.seen.Check = max(c, e.seen.Check)
	e.seen.Page = cmp.Or(page, e.seen.Page)
	f.hurry = f.hurry || c == CheckedBad
}

func (f *fleet) takeSeen() (all []Seen) {
	for _, e := range f.seen {
		e.seen.Key = e.ranks[0].key
		all = append(all, e.seen)
		e.seen = Seen{}
	}
	f.seen, f.hurry = f.seen[:0], false
	return all
}

// asks reports whether this router is the one that asks the worker: it has the greatest hash of router and worker.
func (f *fleet) asks(e *endpoint) bool {
	own := rendezvous(f.self, e.ranks[0].key)
	return !slices.ContainsFunc(f.others, func(o uint64) bool { return rendezvous(o, e.ranks[0].key) > own })
}

func rendezvous(router, worker uint64) uint64 {
	x := (router ^ worker) * 0x9E3779B97F4A7C15
	x = (x ^ x>>32) * 0xD6E8FEB86659FD93
	return x ^ x>>32
}

// publishedWithin is how long a good check waits for the next Share and its way, at most.
const publishedWithin = 1500 * time.Millisecond

// follow sets which questions to a worker other routers answer: none if this router asks it, or if there is something
// wrong with the worker.
func (f *fleet) follow(e *endpoint, a *Phase, now time.Duration) {
	if len(f.others) == 0 || !a.Up || a.Leaving || a.Still || e.health.IsSetAside() || !e.health.HasPassed() || f.asks(e) {
		return
	}
	within := func(heard, every time.Duration) bool {
		return heard > 0 && now-heard < 2*max(every, a.Rest)+publishedWithin
	}
	a.Checked = within(e.checkHeard, f.conf.HealthInterval)
	a.Read = within(e.pageHeard, f.conf.ScrapeInterval)
}
