package daemon

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/warmpath/warmpath/daemon/worker"
)

// metrics is every Prometheus name that is counted as requests go by. What other rooms count is read at the scrape, in
// collect.go.
type metrics struct {
	registry *prometheus.Registry

	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	ttft      *prometheus.HistogramVec
	pick      *prometheus.HistogramVec
	fuel      *prometheus.HistogramVec
	fallback  *prometheus.CounterVec
	blocks    prometheus.Counter
	matched   *prometheus.CounterVec
	retries   *prometheus.CounterVec
	shed      *prometheus.CounterVec
	sessions  *prometheus.CounterVec
	reloadsOK prometheus.Gauge

	models names

	held      series
	predicted prometheus.Counter // of matched
}

// Seconds: 1 ms to 17 min by factors of 2; and 100 ns to 3 ms for picks.
var (
	secondBuckets = prometheus.ExponentialBuckets(0.001, 2, 21)
	pickBuckets   = prometheus.ExponentialBuckets(1e-7, 2, 16)
	fuelBuckets   = prometheus.ExponentialBuckets(16, 4, 9)
)

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "warmpath_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "warmpath_" + name, Help: help, Buckets: buckets}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: counter("requests_total", "Requests answered.", "strategy", "model", "worker", "code"),
		duration: histogram("request_duration_seconds", "Arrival to the end of the answer.", secondBuckets, "strategy"),
		ttft:     histogram("ttft_seconds", "Arrival to the first byte of a successful answer's body.", secondBuckets, "strategy", "worker"),
		pick:     histogram("pick_seconds", "Time a strategy took to choose.", pickBuckets, "strategy"),
		fuel:     histogram("pick_fuel", "Fuel a strategy used to choose.", fuelBuckets, "strategy"),
		fallback: counter("fallback_total", "Requests whose worker was chosen by the fallback.", "strategy", "reason"),
		blocks:   prometheus.NewCounter(prometheus.CounterOpts{Name: "warmpath_prefix_blocks_total", Help: "Blocks of the prompts routed."}),
		matched: counter("prefix_matched_blocks_total", "Leading blocks believed to be held by the worker that was chosen.",
			"tier"),
		retries:  counter("retries_total", "Requests sent on to the next worker before the first byte.", "reason"),
		shed:     counter("shed_total", "Requests turned away before their body was read, and repeats that were not made.", "reason"),
		sessions: counter("session_refusals_total", "Requests refused for their session.", "reason"),
		reloadsOK: prometheus.NewGauge(prometheus.GaugeOpts{Name: "warmpath_config_last_reload_successful",
			Help: "1 if the configuration in force is the file's."}),
	}
	m.registry.MustRegister(m.requests, m.duration, m.ttft, m.pick, m.fuel, m.fallback, m.blocks, m.matched, m.retries, m.shed, m.sessions, m.reloadsOK,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.predicted = m.matched.WithLabelValues("predicted")
	m.reloadsOK.Set(1)
	return m
}

// maxNames bounds the values that a label can take from clients.
const maxNames = 1000

// names passes the first maxNames values and calls the rest "other".
type names struct {
	mu   sync.Mutex // guards seen
	seen map[string]struct{}
}

func (n *names) label(s string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.seen[s]; ok {
		return s
	}
	if len(n.seen) >= maxNames || len(s) > 256 {
		return "other"
	}
	if n.seen == nil {
		n.seen = map[string]struct{}{}
	}
	n.seen[s] = struct{}{}
	return s
}

// picked notes a decision.
func (m *metrics) picked(e *exchange, took time.Duration) {
	s := m.of(e.name)
	s.pick.Observe(took.Seconds())
	if e.result.Fallback != "" {
		m.fallback.WithLabelValues(e.name, e.result.Fallback).Inc()
	} else {
		s.fuel.Observe(float64(e.result.Fuel))
	}
	if n := e.view.frame.Header.PromptBlocks; n > 0 && e.result.Row >= 0 {
		m.blocks.Add(float64(n))
		m.predicted.Add(float64(e.view.frame.Rows[e.result.Row].Predicted))
	}
}

// refused notes an answer of our own. A model that no worker lists is a client's word and becomes no label.
func (m *metrics) refused(e *exchange, f fault) {
	model := "unknown"
	if f.status != 404 {
		model = m.models.label(e.req.Model)
	}
	m.requests.WithLabelValues(e.name, model, "", strconv.Itoa(f.status)).Inc()
	m.duration.WithLabelValues(e.name).Observe(time.Since(e.arrived).Seconds())
}

func (m *metrics) sessionRefused(f fault) {
	m.sessions.WithLabelValues(strings.TrimPrefix(f.code, "session_")).Inc()
}

// answeredHere notes a request that needed a worker's choice only.
func (m *metrics) answeredHere(e *exchange, w *worker.Worker) {
	m.requests.WithLabelValues(e.name, m.models.label(e.req.Model), w.ID(), "200").Inc()
	m.duration.WithLabelValues(e.name).Observe(time.Since(e.arrived).Seconds())
}

func (m *metrics) retried(reason string) { m.retries.WithLabelValues(reason).Inc() }

func (m *metrics) firstByte(b *body) {
	m.ttftOf(b.e.name, b.a.worker.ID()).Observe(b.first.Seconds())
}

// ended notes the end of a worker's answer. The code is 499 for a client that left, 502 for an answer that broke off.
func (m *metrics) ended(b *body, o worker.Outcome, now time.Time) {
	code := b.a.resp.Status
	switch o.Kind {
	case worker.Canceled:
		code = 499
	case worker.Broken:
		code = 502
	}
	e := b.e
	m.requestsOf(answered{e.name, e.req.Model, b.a.worker.ID(), code}).Inc()
	m.of(e.name).duration.Observe(now.Sub(e.arrived).Seconds())
}
