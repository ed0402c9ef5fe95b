package operator

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Departed removes the series of workers and pools that the configuration no longer has.
type Departed struct {
	metrics *Metrics
	mu      sync.Mutex // guards all below
	stay    time.Duration
	pools   []*Pool             // removed by a reload, and their series still there
	since   map[owner]time.Time // when a sweep first found an owner of series gone
}

// owner is who has series: a worker of a pool, or with no worker the pool.
type owner struct{ pool, worker string }

// NewDeparted watches the series of m, which outlive their worker or pool by stay.
func NewDeparted(m *Metrics, stay time.Duration) *Departed {
	return &Departed{metrics: m, stay: stay, since: map[owner]time.Time{}}
}

// Leave takes note of a pool that a reload removed.
func (g *Departed) Leave(p *Pool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pools = append(g.pools, p)
}

// Sweep removes the series of those who have been gone for the stay. pools are those of the configuration. Call it about once a second.
func (g *Departed) Sweep(pools []*Pool, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	alive := map[owner]bool{}
	configured := map[string]bool{}
	for _, p := range pools {
		configured[p.Name] = true
		for id := range p.Workers.InFlight() {
			alive[owner{pool: p.Name, worker: id}] = true
		}
	}
	var still []*Pool
	have := g.metrics.held.owners()
	for _, p := range g.pools {
		if configured[p.Name] { // it has come back
			delete(g.since, owner{pool: p.Name, worker: ""})
			continue
		}
		for id, n := range p.Workers.InFlight() {
			if n > 0 { // its last requests run to their end
				alive[owner{pool: p.Name, worker: id}], alive[owner{pool: p.Name, worker: ""}] = true, true
			}
		}
		have[owner{pool: p.Name, worker: ""}] = true
		still = append(still, p)
	}
	g.pools = still
	for o := range have {
		if g.over(o, alive[o], now) {
			g.metrics.forget(o)
			g.pools = without(g.pools, o)
		}
	}
}

// over tells whether o has been gone for the stay. The caller holds g.mu.
func (g *Departed) over(o owner, alive bool, now time.Time) bool {
	since, gone := g.since[o]
	switch {
	case alive:
		delete(g.since, o)
	case !gone:
		g.since[o] = now
	case now.Sub(since) >= g.stay:
		delete(g.since, o)
		return true
	}
	return false
}

// without is pools without that of o, if o is a pool.
func without(pools []*Pool, o owner) (rest []*Pool) {
	for _, p := range pools {
		if o.worker != "" || p.Name != o.pool {
			rest = append(rest, p)
		}
	}
	return rest
}

// owners are the workers that have series. A series of a worker is made by requestsOf or firstOf, and they keep it.
func (s *series) owners() map[owner]bool {
	all := map[owner]bool{}
	s.requests.each(func(a answered) {
		if a.worker != "" {
			all[owner{pool: a.pool, worker: a.worker}] = true
		}
	})
	s.first.each(func(f firstBy) { all[owner{pool: f.pool, worker: f.worker}] = true })
	return all
}

// forget removes the series of o, in the vectors and here at once: a request in between would count in a series that nobody reads.
func (m *Metrics) forget(o owner) {
	m.held.making.Lock()
	defer m.held.making.Unlock()
	labels := prometheus.Labels{"pool": o.pool}
	if o.worker != "" {
		labels["worker"] = o.worker
	}
	of := func(pool, worker string) bool { return pool == o.pool && (o.worker == "" || worker == o.worker) }
	m.requests.DeletePartialMatch(labels)
	m.ttft.DeletePartialMatch(labels)
	m.itl.DeletePartialMatch(labels)
	m.held.requests.drop(func(a answered) bool { return of(a.pool, a.worker) })
	m.held.first.drop(func(f firstBy) bool { return of(f.pool, f.worker) })
	if o.worker != "" {
		return
	}
	for _, v := range []*prometheus.HistogramVec{m.duration, m.pick, m.fuel} {
		v.DeletePartialMatch(labels)
	}
	for _, v := range []*prometheus.CounterVec{m.fallback, m.blocks, m.matched, m.retries, m.shed, m.sessions} {
		v.DeletePartialMatch(labels)
	}
	m.held.strategies.drop(func(s [2]string) bool { return s[0] == o.pool })
}
