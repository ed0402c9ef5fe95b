package operator

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/daemon/session"
)

var (
	descSessions = desc("sessions", "Session bindings in this router's memory.", "pool", "kind")
	descEvents   = desc("session_events_total", "What happened to session bindings.", "pool", "kind", "event")

	descGets      = desc("cache_gets_total", "Reads of the router's own store.", "tier", "result")
	descBytes     = desc("cache_bytes", "Bytes in the router's own store, with keys and overhead.", "tier")
	descEvictions = desc("cache_evictions_total", "Values that made room for others before their time.", "tier")
	descExpired   = desc("cache_expirations_total", "Values whose time was over.", "tier")
	descTooBig    = desc("cache_refused_total", "Values that the store refused.")
	descL2Up      = desc("cache_l2_up", "1 while Redis answers in time; absent without Redis.")
	descL2Calls   = desc("cache_l2_calls_total", "Calls of Redis by outcome: ok, failed. Slow ones are counted again.", "result")
	descL2Owing   = desc("cache_l2_owing", "Changes that Redis has not been told yet.")
	descL2Lost    = desc("cache_l2_lost_total", "Such changes that were given up.")
)

// collectSessions tells what became of a pool's sessions.
func collectSessions(p *Pool, count func(*prometheus.Desc, float64, ...string)) {
	c := p.Sessions.Counts()
	for _, k := range [...]session.Kind{session.Opened, session.Key, session.Response} {
		for event, n := range map[string]uint64{"opened": c.Opened[k], "used": c.Used[k], "closed": c.Closed[k], "lost": c.Lost[k],
			"rebound": c.Rebound[k]} {
			count(descEvents, float64(n), k.String(), event)
		}
	}
}

// collectStore tells of the router's own store.
func (c collector) collectStore(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	st := c.store()
	count(descGets, st.L1Hits, "l1", "hit")
	count(descGets, st.L2Hits, "l2", "hit")
	count(descGets, st.Misses, "all", "miss")
	gauge(descBytes, float64(st.Bytes), "l1")
	count(descEvictions, st.Evictions, "l1")
	count(descExpired, st.Expirations, "l1")
	count(descTooBig, st.Refused)
	for ns, n := range st.Namespaces {
		if rest, ok := strings.CutPrefix(ns, session.Namespaces); ok {
			kind, pool, _ := strings.Cut(rest, "/")
			gauge(descSessions, float64(n.Entries), pool, kind)
		}
	}
	if !st.L2.Configured {
		return
	}
	gauge(descL2Up, one(!st.L2.Open))
	count(descL2Calls, st.L2.Calls-min(st.L2.Calls, st.L2.Failures), "ok")
	count(descL2Calls, st.L2.Failures, "failed")
	count(descL2Calls, st.L2.Slow, "slow")
	gauge(descL2Owing, float64(st.L2.Owing))
	count(descL2Lost, uint64(st.L2.Lost))
}
