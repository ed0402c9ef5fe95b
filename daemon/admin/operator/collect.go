package operator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/admin/tracing"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
	"github.com/warmpath/warmpath/daemon/peers"
)

// collector reads the plain counts of the other rooms when Prometheus scrapes.
type collector struct {
	process func() processCounts
	recent  *Recent
	pools   func() []*Pool
	clients func() ClientStats
	store   func() tier.Stats
	kv      func() (kvcache.Stats, bool)
	lmcache func() lmcache.Stats // nil = there is none
	peers   func() peers.Stats   // nil = there are none
	memory  func() peers.Written // of the state file; nil = there is none
	spans   func() tracing.Stats // nil = there are none
}

// Describe sends nothing: the collector is unchecked, as workers come and go.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends all readings.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	collect(ch, ofProcess, c.process())
	collect(ch, ofClients, c.clients())
	store := c.store()
	collect(ch, ofStore, store)
	if store.L2.Configured {
		collect(ch, ofRedis, store.L2)
	}
	if kv, open := c.kv(); open {
		collect(ch, ofKVCache, kv)
		if kv.L2 != nil {
			collect(ch, ofL2, *kv.L2)
		}
	}
	if c.lmcache != nil {
		if s := c.lmcache(); s.On {
			collect(ch, ofLMCache, s)
		}
	}
	if c.peers != nil {
		if s := c.peers(); s.On {
			collect(ch, ofHistory, s)
			for i := range s.Pools {
				collect(ch, ofPeers, &s.Pools[i], s.Pools[i].Name)
			}
		}
	}
	if c.memory != nil {
		if w := c.memory(); w.On {
			collect(ch, ofStateFile, w)
		}
	}
	collectSpans(ch, c.spans)
	for _, p := range c.pools() {
		collect(ch, ofPools, p, p.Name)
		collect(ch, ofDemand, c.recent.Demand(p, now), p.Name)
		for _, s := range p.Workers.Stats(now) {
			collect(ch, ofWorkers, workerCounts{Stats: s, blocks: p.Index.Worker(s.Slot).Blocks}, p.Name, s.ID)
			if p.Events == nil {
				continue
			}
			if e, ok := p.Events.Of(s.ID); ok {
				collect(ch, ofEvents, e, p.Name, s.ID)
			}
		}
		if p.Shadows != nil {
			all, dropped := p.Shadows.Reports()
			for _, r := range all {
				collect(ch, ofShadows, r, p.Name, r.Strategy)
			}
			if len(all) > 0 {
				collect(ch, ofShadowQueues, dropped, p.Name)
			}
		}
		for _, s := range p.Strategies() { // none while the pool closes
			n := s.Stats()
			collect(ch, ofStrategies, strategyCounts{sha256: s.SHA256(), discarded: n.Discarded, instances: n.Instances,
				quarantined: n.Quarantined, metrics: n.Metrics}, p.Name, s.Name())
		}
	}
}

// collectSpans sends the counts of a tracer; spans is nil while tracing is off.
func collectSpans(ch chan<- prometheus.Metric, spans func() tracing.Stats) {
	if spans == nil {
		return
	}
	if s := spans(); s.On {
		collect(ch, ofSpans, s)
	}
}
