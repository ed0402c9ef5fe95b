package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/tracing"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/front"
	"github.com/warmpath/warmpath/daemon/request/ledger"
	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
)

// counts has the counters of the process and of its packages at one moment. Those of a package that is switched off
// are zero.
type counts struct {
	process processCounts
	clients front.Stats
	store   tier.Stats
	kv      kvcache.Stats
	kvOpen  bool // kv is there
	lmcache lmcache.Stats
	peers   peers.Stats
	memory  peers.Written
	spans   tracing.Stats
	certs   []certificate.Stats
	limits  []limit.Stats
}

// Sources are what is read when Prometheus scrapes. Nil pointers are parts that are switched off.
type Sources struct {
	Pools   func() []*readiness.Pool // those in force
	Clients func() front.Stats
	Store   *tier.Store
	KVCache *kvcache.Cache
	LMCache *lmcache.Controller
	Peers   *peers.Peers
	Limits  *ledger.Ledger

	Certificates *certificate.All

	Memory *peers.StateFile
	Spans  *tracing.Tracer
}

// read reads the counters of m and of the sources.
func (c *Sources) read(m *Metrics) counts {
	n := counts{process: m.process(), clients: c.Clients(), store: c.Store.Stats(),
		lmcache: c.LMCache.Stats(), peers: c.Peers.Stats(), memory: c.Memory.Stats(), spans: c.Spans.Stats(),
		certs: c.Certificates.Stats(), limits: c.Limits.Counts(time.Now())}
	n.kv, n.kvOpen = c.KVCache.Stats()
	return n
}

// Handler returns what answers GET /metrics, with the readings of the sources. Call it once.
func (m *Metrics) Handler(c Sources) http.Handler {
	m.registry.MustRegister(collector{m, c})
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// collector reads the plain counts of the other packages when Prometheus scrapes.
type collector struct {
	m *Metrics
	c Sources
}

// Describe sends nothing: the collector is unchecked, as workers come and go.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends all readings.
func (all collector) Collect(ch chan<- prometheus.Metric) {
	n := all.c.read(all.m)
	n.send(ch)
	sendPools(ch, all.c.Pools(), &all.m.recent, all.m.byWorker())
}

// send sends the readings of all that is on.
func (n *counts) send(ch chan<- prometheus.Metric) {
	collect(ch, ofProcess, n.process)
	collect(ch, ofClients, n.clients)
	for _, c := range n.certs {
		collect(ch, ofCertificates, c, c.Listener)
	}
	for _, l := range n.limits {
		if l.Used != (limit.Used{}) || l.InFlight > 0 { // a key that nobody has used yet has no series
			collect(ch, ofLimits, l, l.Key)
		}
	}
	collect(ch, ofStore, n.store)
	if n.store.L2.Configured {
		collect(ch, ofRedis, n.store.L2)
	}
	if n.kvOpen {
		collect(ch, ofKVCache, n.kv)
		if n.kv.L2 != nil {
			collect(ch, ofL2, *n.kv.L2)
		}
	}
	if n.lmcache.On {
		collect(ch, ofLMCache, n.lmcache)
	}
	if n.peers.On {
		collect(ch, ofHistory, n.peers)
		for i := range n.peers.Pools {
			collect(ch, ofPeers, &n.peers.Pools[i], n.peers.Pools[i].Name)
		}
	}
	if n.memory.On {
		collect(ch, ofStateFile, n.memory)
	}
	if n.spans.On {
		collect(ch, ofSpans, n.spans)
	}
}

// sendPools sends the readings of pools, of their workers and of their strategies.
func sendPools(ch chan<- prometheus.Metric, pools []*readiness.Pool, recent *Recent, which string) {
	now := time.Now()
	for _, p := range pools {
		collect(ch, ofPools, p, p.Name)
		asked := recent.Load(p, now)
		collect(ch, ofDemand, asked, p.Name)
		for _, l := range asked.Roles {
			collect(ch, ofRoles, l, p.Name, l.Role)
		}
		if p.Queue != nil {
			for _, l := range p.Queue.Levels() {
				collect(ch, ofQueues, l, p.Name, l.Name)
			}
		}
		for _, s := range p.Workers.Stats(now) {
			if which == "none" {
				break
			}
			counts := workerCounts{Stats: s, blocks: p.Index.Worker(s.Slot).Blocks}
			collect(ch, ofFleets, counts, p.Name, s.ID)
			if which == "gauges" {
				continue
			}
			collect(ch, ofWorkers, counts, p.Name, s.ID)
			if s.LMCache != nil {
				collect(ch, ofLMCacheAt, s.LMCache, p.Name, s.ID)
			}
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
			collect(ch, ofStrategies, strategyCounts{Stats: s.Stats(), sha256: s.SHA256()}, p.Name, s.Name())
		}
	}
}
