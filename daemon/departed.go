package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// seriesStay is how long the series of a worker or pool outlive it: a scrape or two at the usual 15 to 30 s, so that the counts of
// its last requests reach Prometheus. With no end, pods that roll under workers_dns would make /metrics grow for the life of the
// process.
const seriesStay = time.Minute

// departed removes the series of workers and pools that the configuration no longer has.
type departed struct {
	mu    sync.Mutex // guards all below
	stay  time.Duration
	pools []*pool             // removed by a reload, and their series still there
	since map[owner]time.Time // when a sweep first found an owner of series gone
}

// owner is who has series: a worker of a pool, or with no worker the pool.
type owner struct{ pool, worker string }

func newDeparted() *departed { return &departed{stay: seriesStay, since: map[owner]time.Time{}} }

// leave takes note of a pool that a reload removed.
func (g *departed) leave(p *pool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pools = append(g.pools, p)
}

// tend sweeps the series, and fits the number of clients to the number of workers, once a second until ctx ends.
func (d *Daemon) tend(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			d.departed.sweep(d, now)
			d.fitRoom()
		}
	}
}

// sweep removes the series of those who have been gone for the stay.
func (g *departed) sweep(d *Daemon, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	alive := map[owner]bool{}
	configured := map[string]bool{}
	for _, p := range d.state.Load().pools {
		configured[p.name] = true
		for id := range p.workers.InFlight() {
			alive[owner{p.name, id}] = true
		}
	}
	var still []*pool
	have := d.metrics.held.owners()
	for _, p := range g.pools {
		if configured[p.name] { // it has come back
			delete(g.since, owner{p.name, ""})
			continue
		}
		for id, n := range p.workers.InFlight() {
			if n > 0 { // its last requests run to their end
				alive[owner{p.name, id}], alive[owner{p.name, ""}] = true, true
			}
		}
		have[owner{p.name, ""}] = true
		still = append(still, p)
	}
	g.pools = still
	for o := range have {
		if g.over(o, alive[o], now) {
			d.metrics.forget(o)
			g.pools = without(g.pools, o)
		}
	}
}

// over tells whether o has been gone for the stay. The caller holds g.mu.
func (g *departed) over(o owner, alive bool, now time.Time) bool {
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
func without(pools []*pool, o owner) (rest []*pool) {
	for _, p := range pools {
		if o.worker != "" || p.name != o.pool {
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
			all[owner{a.pool, a.worker}] = true
		}
	})
	s.first.each(func(f firstBy) { all[owner{f.pool, f.worker}] = true })
	return all
}

// forget removes the series of o, in the vectors and here at once: a request in between would count in a series that nobody reads.
func (m *metrics) forget(o owner) {
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
