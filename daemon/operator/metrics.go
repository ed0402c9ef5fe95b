package operator

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/worker"
)

// Metrics is every Prometheus name that is counted as requests go by. What other rooms count is read at the scrape, in
// collect.go.
type Metrics struct {
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

// NewMetrics returns the metrics of a process that runs a version.
func NewMetrics(version string) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "warmpath_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "warmpath_" + name, Help: help, Buckets: buckets}, labels)
	}
	m := &Metrics{
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
	build.WithLabelValues(version, runtime.Version(), runtime.GOOS, runtime.GOARCH).Set(1)
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

// ReloadSucceeded sets whether the configuration in force is the file's.
func (m *Metrics) ReloadSucceeded(yes bool) { m.reloadsOK.Set(one(yes)) }

// Picked implements exchange.Meter.
func (m *Metrics) Picked(s *exchange.Seen) {
	of := m.of(s.Pool, s.Strategy)
	of.pick.Observe(s.PickTime.Seconds())
	if s.Fallback != "" {
		m.fallback.WithLabelValues(s.Pool, s.Strategy, s.Fallback).Inc()
	} else {
		of.fuel.Observe(float64(s.Fuel))
	}
	if s.PromptBlocks > 0 {
		of.blocks.Add(float64(s.PromptBlocks))
		of.predicted.Add(float64(s.Predicted))
	}
}

// Refused implements exchange.Meter. A model's name that no worker has answered for is a client's word and becomes no label.
func (m *Metrics) Refused(s *exchange.Seen, code string, status int, took time.Duration) {
	m.requests.WithLabelValues(s.Pool, s.Strategy, m.models.known(s.Model), "", strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(s.Pool, s.Strategy).Observe(took.Seconds())
	s.Counted = true
	if code == exchange.FaultFull.Code {
		m.Shed(s.Pool, code)
	}
}

// Answered implements front.Meter: it counts a request that was refused at the door, or that the router itself answered. No label is
// the client's word.
func (m *Metrics) Answered(s *exchange.Seen) {
	if s.Counted {
		return
	}
	s.Counted = true
	model := ""
	if s.Worker != "" && s.Model != "" {
		model = m.models.known(s.Model)
	}
	m.requestsOf(answered{pool: s.Pool, strategy: s.Strategy, model: model, worker: s.Worker, code: s.Status}).Inc()
}

// SessionRefused implements exchange.Meter.
func (m *Metrics) SessionRefused(pool, code string) {
	m.sessions.WithLabelValues(pool, strings.TrimPrefix(code, "session_")).Inc()
}

// Placed implements exchange.Meter. The request's status is not settled yet: Answered counts it.
func (m *Metrics) Placed(s *exchange.Seen, took time.Duration) {
	m.of(s.Pool, s.Strategy).duration.Observe(took.Seconds())
}

// Retried implements exchange.Meter.
func (m *Metrics) Retried(pool, reason string) { m.retries.WithLabelValues(pool, reason).Inc() }

// Shed implements exchange.Meter.
func (m *Metrics) Shed(pool, reason string) { m.shed.WithLabelValues(pool, reason).Inc() }

// FirstByte implements exchange.Meter.
func (m *Metrics) FirstByte(s *exchange.Seen) {
	m.firstOf(firstBy{pool: s.Pool, strategy: s.Strategy, worker: s.Worker, stream: s.Stream}).ttft.Observe(s.FirstByte.Seconds())
}

// Ended implements exchange.Meter. The code is 499 for a client that left, 502 for an answer that broke off or reported a failure.
func (m *Metrics) Ended(s *exchange.Seen, e exchange.End) {
	code := e.Status
	switch e.Outcome.Kind {
	case worker.Canceled:
		code = 499
	case worker.Broken, worker.Leaving:
		code = 502
	case worker.Failed:
		if code < 500 { // reported inside an answer that had begun well
			code = 502
		}
	}
	model := s.Model
	if code >= 400 && code < 500 { // 404 for one: a worker that lists nothing is asked for any name
		model = m.models.known(model)
	}
	if e.Translated && (code == e.Status || e.Status >= 300) {
		if code < 400 {
			m.models.label(model)
		}
	} else {
		m.requestsOf(answered{pool: s.Pool, strategy: s.Strategy, model: model, worker: s.Worker, code: code}).Inc()
		s.Counted = true
	}
	m.of(s.Pool, s.Strategy).duration.Observe(e.Took.Seconds())
	if s.Stream && s.FirstByte > 0 && e.Outcome.Kind == worker.Answered && e.Outcome.Tokens > 1 {
		between := (e.Took - s.FirstByte).Seconds() / float64(e.Outcome.Tokens-1)
		m.firstOf(firstBy{pool: s.Pool, strategy: s.Strategy, worker: s.Worker, stream: true}).itl.Observe(max(0, between))
	}
}
