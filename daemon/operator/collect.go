package operator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/worker"
)

// collector reads the plain counts of the other rooms when Prometheus asks.
type collector struct {
	pools   func() []*Pool
	clients func() ClientStats
	store   func() tier.Stats
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("warmpath_"+name, help, labels, nil)
}

var (
	descUp        = desc("worker_up", "1 if the worker gets requests.", "pool", "worker")
	descInFlight  = desc("worker_in_flight", "Requests sent and not ended.", "pool", "worker")
	descRunning   = desc("worker_running", "Requests running, as the worker says.", "pool", "worker")
	descWaiting   = desc("worker_waiting", "Requests waiting, as the worker says.", "pool", "worker")
	descBreaker   = desc("worker_breaker_state", "0 = closed, 1 = a trial is due or runs, 2 = open.", "pool", "worker")
	descKVUsage   = desc("worker_kv_usage", "KV cache in use, 0 to 1, as the worker says.", "pool", "worker")
	descSlow      = desc("worker_slowness", "Learnt from streams and from the workers' metrics: prefill seconds per estimated second.", "pool", "worker")
	descWait      = desc("worker_queued_prefill_seconds", "Believed prefill queue.", "pool", "worker")
	descBlocks    = desc("index_blocks", "Blocks believed held.", "pool", "worker")
	descNodes     = desc("index_nodes", "Nodes of the prefix index.", "pool")
	descTraps     = desc("module_traps_total", "Instances discarded after an error.", "pool", "strategy")
	descInstances = desc("module_instances", "Live instances.", "pool", "strategy")
	descSetAside  = desc("module_quarantined", "1 while the module is set aside after repeated errors.", "pool", "strategy")
	descModule    = desc("module_info", "The module that serves.", "pool", "strategy", "sha256")
	descPanics    = desc("panic_requests_total", "Requests sent to a worker that is not up, as none was.", "pool")
	descDenied    = desc("retries_denied_total", "Repeats that the retry budget refused.", "pool")
	descDraining  = desc("worker_draining", "1 if the worker gets no new requests because it is going: it was asked to drain, or its answers told.", "pool", "worker")
	descLeft      = desc("worker_left_total", "Times that a worker's answers told it is going.", "pool", "worker")

	descOpen     = desc("client_connections", "Clients' connections open.")
	descAccepted = desc("client_connections_total", "Clients' connections by what became of them.", "event")
	descServing  = desc("requests_in_flight", "Clients' requests being served.")
	descUnlogged = desc("access_log_lost_lines_total", "Lines of the access log that could not be written: its disk was full, or its disk or its reader was stuck.")
)

// ClientStats is what the clients' side counts.
type ClientStats struct {
	InFlight  int64  // requests
	LostLines uint64 // of the access log
	Open      int    // connections

	Accepted, Refused, Gone, SlowClosed uint64 // connections since the start
}

// Describe sends nothing: the collector is unchecked, as workers come and go.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect reads all pools.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	c.collectClients(ch)
	c.collectStore(ch)
	for _, p := range c.pools() {
		gauge := func(d *prometheus.Desc, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{p.Name}, labels...)...)
		}
		count := func(d *prometheus.Desc, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, append([]string{p.Name}, labels...)...)
		}
		for _, s := range p.Workers.Stats(time.Now()) {
			collectWorker(p, s, gauge)
			count(descLeft, float64(s.Left), s.ID)
		}
		counts := p.Workers.Counts()
		count(descPanics, float64(counts.Panics))
		count(descDenied, float64(counts.RetriesRefused))
		gauge(descNodes, float64(p.Index.Stats().Nodes))
		collectSessions(p, count)
		s := p.Strategy.Strategy()
		if s == nil { // the pool is closing
			continue
		}
		hs := s.Stats()
		count(descTraps, float64(hs.Replaced), s.Name())
		gauge(descInstances, float64(hs.Instances), s.Name())
		gauge(descSetAside, one(hs.Quarantined), s.Name())
		gauge(descModule, 1, s.Name(), s.SHA256())
	}
}

// collectClients tells of the clients' side.
func (c collector) collectClients(ch chan<- prometheus.Metric) {
	s := c.clients()
	ch <- prometheus.MustNewConstMetric(descServing, prometheus.GaugeValue, float64(s.InFlight))
	ch <- prometheus.MustNewConstMetric(descUnlogged, prometheus.CounterValue, float64(s.LostLines))
	ch <- prometheus.MustNewConstMetric(descOpen, prometheus.GaugeValue, float64(s.Open))
	for event, n := range map[string]uint64{"accepted": s.Accepted, "refused": s.Refused, "left_early": s.Gone, "too_slow": s.SlowClosed} {
		ch <- prometheus.MustNewConstMetric(descAccepted, prometheus.CounterValue, float64(n), event)
	}
}

func collectWorker(p *Pool, s worker.Stats, gauge func(*prometheus.Desc, float64, ...string)) {
	gauge(descUp, one(s.Up), s.ID)
	gauge(descDraining, one(s.State == worker.Draining), s.ID)
	gauge(descBreaker, float64(s.Breaker), s.ID)
	gauge(descInFlight, float64(s.InFlight), s.ID)
	gauge(descRunning, float64(s.Running), s.ID)
	gauge(descWaiting, float64(s.Waiting), s.ID)
	gauge(descKVUsage, s.KVUsage, s.ID)
	gauge(descSlow, s.Slow, s.ID)
	gauge(descWait, s.Wait, s.ID)
	gauge(descBlocks, float64(p.Index.Worker(s.Slot).Blocks), s.ID)
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
