package metrics

import (
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
)

// Departed removes the series of workers and pools that the configuration no longer has.
type Departed struct {
	series *series
	recent *Recent
	stay   time.Duration

	mu    sync.Mutex          // guards all below
	pools []*readiness.Pool   // removed by a reload, with series left
	since map[owner]time.Time // when a sweep first found an owner of series gone
}

// NewDeparted watches the series of m, which outlive their worker or pool by stay.
func NewDeparted(m *Metrics, stay time.Duration) *Departed {
	return &Departed{series: &m.series, recent: &m.recent, stay: stay, since: map[owner]time.Time{}}
}

// Leave records a pool that a reload removed.
func (g *Departed) Leave(p *readiness.Pool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pools = append(g.pools, p)
}

// Sweep removes the series of workers and pools that have been gone for the retention time. pools are those of the
// configuration. Call it about once a second.
func (g *Departed) Sweep(pools []*readiness.Pool, now time.Time) {
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
	var still []*readiness.Pool
	have := g.series.owners()
	for _, p := range g.pools {
		if configured[p.Name] { // it has come back
			delete(g.since, owner{pool: p.Name})
			continue
		}
		for id, n := range p.Workers.InFlight() {
			if n > 0 { // its last requests run to their end
				alive[owner{pool: p.Name, worker: id}] = true
				alive[owner{pool: p.Name}] = true
			}
		}
		have[owner{pool: p.Name}] = true
		still = append(still, p)
	}
	g.pools = still
	for o := range have {
		if g.over(o, alive[o], now) {
			g.series.forget(o)
			if o.worker == "" {
				g.recent.forget(o.pool)
			}
			g.pools = without(g.pools, o)
		}
	}
}

// over reports whether o has been gone for the retention time. The caller holds g.mu.
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

// without returns pools without the pool of o, if o is a pool.
func without(pools []*readiness.Pool, o owner) (rest []*readiness.Pool) {
	for _, p := range pools {
		if o.worker != "" || p.Name != o.pool {
			rest = append(rest, p)
		}
	}
	return rest
}
