package daemon

import (
	"runtime"
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
	itl       *prometheus.HistogramVec
	pick      *prometheus.HistogramVec
	fuel      *prometheus.HistogramVec
	fallback  *prometheus.CounterVec
	blocks    *prometheus.CounterVec
	matched   *prometheus.CounterVec
	retries   *prometheus.CounterVec
	shed      *prometheus.CounterVec
	sessions  *prometheus.CounterVec
	reloadsOK prometheus.Gauge

	models names

	held series
}

// Seconds: 1 ms to 17 min by factors of 2; 0.5 ms to 8 s for the time between tokens; and 100 ns to 13 ms for picks.
var (
	itlBuckets    = prometheus.ExponentialBuckets(0.0005, 2, 15)
	secondBuckets = prometheus.ExponentialBuckets(0.001, 2, 21)
	pickBuckets   = prometheus.ExponentialBuckets(1e-7, 2, 18)
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
		requests: counter("requests_total", "Requests answered, each once, as in the access log. pool, strategy, model and worker are empty "+
			"where a request was answered before they were known.", "pool", "strategy", "model", "worker", "code"),
		duration: histogram("request_duration_seconds", "Arrival to the end of the answer, of requests whose body was read for a pool.", secondBuckets, "pool", "strategy"),
		ttft: histogram("ttft_seconds", "Arrival to the first output of a successful answer. stream=\"false\" is an answer in one piece: "+
			"its first byte comes when all of it has been generated.", secondBuckets, "pool", "strategy", "worker", "stream"),
		itl: histogram("itl_seconds", "Mean time between two output tokens of a stream, one observation a stream whose worker counted "+
			"its tokens (stream_options.include_usage).", itlBuckets, "pool", "strategy", "worker"),
		pick:     histogram("pick_seconds", "Time a strategy took to choose.", pickBuckets, "pool", "strategy"),
		fuel:     histogram("pick_fuel", "Fuel a strategy used to choose.", fuelBuckets, "pool", "strategy"),
		fallback: counter("fallback_total", "Requests whose worker was chosen by the fallback.", "pool", "strategy", "reason"),
		blocks:   counter("prefix_blocks_total", "Blocks of the prompts routed.", "pool"),
		matched: counter("prefix_matched_blocks_total", "Leading blocks believed to be held by the worker that was chosen.",
			"pool", "tier"),
		retries: counter("retries_total", "Requests sent on to the next worker before the first byte.", "pool", "reason"),
		shed: counter("shed_total", "Load that was turned away: requests above a limit of the router (overloaded) or of all workers of a "+
			"pool (workers_full), and repeats above a pool's retry_budget.", "pool", "reason"),
		sessions: counter("session_refusals_total", "Requests refused for their session.", "pool", "reason"),
		reloadsOK: prometheus.NewGauge(prometheus.GaugeOpts{Name: "warmpath_config_last_reload_successful",
			Help: "1 if the configuration in force is the file's."}),
	}
	m.registry.MustRegister(m.requests, m.duration, m.ttft, m.itl, m.pick, m.fuel, m.fallback, m.blocks, m.matched, m.retries, m.shed, m.sessions, m.reloadsOK,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.reloadsOK.Set(1)
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "warmpath_build_info", Help: "The binary that runs; always 1."},
		[]string{"version", "go_version", "os", "arch"})
	build.WithLabelValues(Version, runtime.Version(), runtime.GOOS, runtime.GOARCH).Set(1)
	m.registry.MustRegister(build)
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

// known passes a value that label has passed before, and calls the rest "unknown".
func (n *names) known(s string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.seen[s]; ok {
		return s
	}
	return "unknown"
}

// picked notes a decision.
func (m *metrics) picked(e *exchange, took time.Duration) {
	s := m.of(e.pool.name, e.name)
	s.pick.Observe(took.Seconds())
	if e.result.Fallback != "" {
		m.fallback.WithLabelValues(e.pool.name, e.name, e.result.Fallback).Inc()
	} else {
		s.fuel.Observe(float64(e.result.Fuel))
	}
	if n := e.view.frame.Header.PromptBlocks; n > 0 && e.result.Row >= 0 {
		s.blocks.Add(float64(n))
		s.predicted.Add(float64(e.view.frame.Rows[e.result.Row].Predicted))
	}
}

// refused notes an answer of our own. A model's name that no worker has answered for is a client's word and becomes no label.
// status is the client's: on SageMaker's paths it may be another than f's.
func (m *metrics) refused(e *exchange, f fault, status int) {
	model := m.models.known(e.req.Model)
	m.requests.WithLabelValues(e.poolName(), e.name, model, "", strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(e.poolName(), e.name).Observe(time.Since(e.arrived).Seconds())
	e.in.Seen.counted = true
	if f.code == faultFull.code {
		m.shed.WithLabelValues(e.poolName(), f.code).Inc()
	}
}

// answered counts a request that nothing else has counted: it was refused at the door, or the router itself answered it. No
// label is the client's word.
func (m *metrics) answered(seen *Seen) {
	if seen.counted {
		return
	}
	seen.counted = true
	model := ""
	if seen.Worker != "" && seen.Model != "" {
		model = m.models.known(seen.Model)
	}
	m.requestsOf(answered{seen.Pool, seen.Strategy, model, seen.Worker, seen.Status}).Inc()
}

func (m *metrics) sessionRefused(pool string, f fault) {
	m.sessions.WithLabelValues(pool, strings.TrimPrefix(f.code, "session_")).Inc()
}

// answeredHere notes a request that needed a worker's choice only. Its status is not settled yet: answered counts it.
func (m *metrics) answeredHere(e *exchange) {
	m.of(e.pool.name, e.name).duration.Observe(time.Since(e.arrived).Seconds())
}

func (m *metrics) retried(pool, reason string) { m.retries.WithLabelValues(pool, reason).Inc() }

func (m *metrics) firstByte(b *body) {
	m.firstOf(firstBy{b.e.pool.name, b.e.name, b.a.worker.ID(), b.events}).ttft.Observe(b.first.Seconds())
}

// ended notes the end of a worker's answer. The code is 499 for a client that left, 502 for an answer that broke off or told of a failure.
func (m *metrics) ended(b *body, o worker.Outcome, now time.Time) {
	code := b.a.resp.Status
	switch o.Kind {
	case worker.Canceled:
		code = 499
	case worker.Broken, worker.Leaving:
		code = 502
	case worker.Failed:
		if code < 500 { // told of inside an answer that had begun well
			code = 502
		}
	}
	e := b.e
	model := e.req.Model
	if code >= 400 && code < 500 { // 404 for one: a worker that lists nothing is asked for any name
		model = m.models.known(model)
	}
	if e.call != nil && (code == b.a.resp.Status || b.a.resp.Status >= 300) { // told translates it: answered counts what the client gets
		if code < 400 {
			m.models.label(model)
		}
	} else {
		m.requestsOf(answered{e.pool.name, e.name, model, b.a.worker.ID(), code}).Inc()
		e.in.Seen.counted = true
	}
	m.of(e.pool.name, e.name).duration.Observe(now.Sub(e.arrived).Seconds())
	if b.events && b.first > 0 && o.Kind == worker.Answered && o.Tokens > 1 {
		between := (now.Sub(e.arrived) - b.first).Seconds() / float64(o.Tokens-1)
		m.firstOf(firstBy{e.pool.name, e.name, b.a.worker.ID(), true}).itl.Observe(max(0, between))
	}
}
