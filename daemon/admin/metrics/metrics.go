package metrics

import (
	"cmp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/warmpath/warmpath/daemon/admin/timeline"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// Metrics counts the outcomes of requests. It implements journal.Meter and front.Meter.
type Metrics struct {
	registry *prometheus.Registry
	byKey    *prometheus.Registry // those of the counters above that have a label key
	series   series
	recent   Recent
	timeline timeline.Timeline
	reload   reloads
	full     tally         // requests refused as all workers of a pool were full
	rejected tally         // requests that a strategy turned away, by pool, a space and the strategy
	crowded  atomic.Uint64 // of these, those whose body was not read
	workers  atomic.Value  // string, of ByWorker
	version  string
	stale    atomic.Bool // the configuration in force is not the file's
}

// NewMetrics returns the metrics of a process that runs a version.
func NewMetrics(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), version: version}
	m.series.vectors = newVectors(m.registry)
	m.byKey = keyed(m.series.vectors)
	m.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// process returns the counts of the process itself.
func (m *Metrics) process() processCounts {
	return processCounts{version: m.version, reloaded: !m.stale.Load()}
}

// strategyOf returns the series of a request's pool and strategy.
func (m *Metrics) strategyOf(s *message.Seen) *strategySeries {
	return m.series.strategy(strategyOf{pool: s.Pool, strategy: s.Strategy})
}

// firstOutputOf returns the series of a request's first output.
func (m *Metrics) firstOutputOf(s *message.Seen) *firstOutputSeries {
	return m.series.first(firstOutputOf{pool: s.Pool, strategy: s.Strategy, worker: m.named(s.Worker), stream: s.Stream})
}

// ByWorker sets which series each worker has: all, gauges or none.
func (m *Metrics) ByWorker(which string) {
	m.workers.Store(which)
	if m.byWorker() == "all" {
		return
	}
	for o := range m.series.owners() { // none, if it was so before
		m.series.forget(o)
	}
}

func (m *Metrics) byWorker() string {
	which, _ := m.workers.Load().(string)
	return cmp.Or(which, "all")
}

// named returns the label of a worker.
func (m *Metrics) named(worker string) string {
	if m.byWorker() == "all" {
		return worker
	}
	return ""
}

// Reloaded records the result of the last reload, and whether the configuration in force is the file's.
func (m *Metrics) Reloaded(r Reload) {
	m.stale.Store(!r.OK)
	m.reload.set(r)
	switch {
	case !r.OK:
		m.timeline.Mark(timeline.Mark{At: r.At, Kind: timeline.Refused, Text: r.Error})
	case len(r.Changed) > 0:
		m.timeline.Mark(timeline.Mark{At: r.At, Kind: timeline.Reloaded, Text: strings.Join(r.Changed, ", ")})
	}
}

// Recent returns the counts of the last hour.
func (m *Metrics) Recent() *Recent { return &m.recent }

// Version returns the version of the process.
func (m *Metrics) Version() string { return m.version }

// Full returns how many requests were refused as all workers of a pool were full.
func (m *Metrics) Full(pool string) uint64 { return m.full.of(pool) }

// Rejected returns how many requests a strategy of a pool turned away.
func (m *Metrics) Rejected(pool, strategy string) uint64 { return m.rejected.of(pool + " " + strategy) }

// at returns the time of the reported event. A look at the clock takes 40 ns.
func at(s *message.Seen) time.Time {
	if s.At.IsZero() {
		return time.Now()
	}
	return s.At
}

// Arrived implements journal.Meter. The client chose the model's name.
func (m *Metrics) Arrived(s *message.Seen) {
	m.series.arrived(arrivalOf{pool: s.Pool, model: m.series.models.known(s.Model)}).Inc()
	m.series.key(keyOf{pool: s.Pool, key: s.Key}).arrivals.Inc()
	m.recent.arrived(s.Pool, at(s))
}

// Picked implements journal.Meter.
func (m *Metrics) Picked(s *message.Seen) {
	m.recent.picked(s, at(s))
	m.series.key(keyOf{pool: s.Pool, key: s.Key}).prompts.Add(float64(max(0, s.PromptTokens)))
	of := m.strategyOf(s)
	of.pick.Observe(s.PickTime.Seconds())
	if s.Fallback != "" {
		m.series.counter(fallbacks, s.Pool, s.Strategy, s.Fallback).Inc()
	} else {
		of.fuel.Observe(float64(s.Fuel))
	}
	if s.PromptBlocks > 0 {
		of.blocks.Add(float64(s.PromptBlocks))
		of.predicted.Add(float64(s.Predicted))
	}
}

// Refused implements journal.Meter. If no worker has answered for the model, the client made its name up, and it
// becomes no label.
func (m *Metrics) Refused(s *message.Seen, f message.Fault, status int, took time.Duration) {
	m.series.counter(requests, s.Pool, s.Strategy, m.series.models.known(s.Model), m.named(lastTried(s)),
		strconv.Itoa(status)).Inc()
	m.series.histogram(duration, s.Pool, s.Strategy).Observe(took.Seconds())
	s.Counted = true
	switch f.Cause {
	case message.ClientLeft: // it was not refused
	case message.WorkerFailed:
		m.recent.unanswered(s.Pool, at(s))
	default:
		m.recent.turnedAway(s.Pool, f.Cause == message.NoFreeWorker && !f.Alone, at(s))
		m.series.key(keyOf{pool: s.Pool, key: s.Key}).refused.Inc()
	}
	switch f.Code {
	case message.FaultFull.Code:
		m.Shed(s.Pool, f.Code)
		m.full.add(s.Pool)
	case message.FaultRejected.Code:
		m.rejected.add(s.Pool + " " + s.Strategy)
	case message.FaultQueueFull.Code, message.FaultWaited.Code: // queueDropped has them
		m.full.add(s.Pool)
	}
}

// Crowded implements front.Meter. Nobody knows for which pool the request was: where there are several they take turns.
func (m *Metrics) Crowded(s *message.Seen, pools []*epoch.Pool) {
	of := pools[m.crowded.Add(1)%uint64(len(pools))].Name
	if len(pools) == 1 {
		s.Pool = of
	}
	m.Shed(s.Pool, message.FaultFull.Code)
	m.full.add(of)
	key := m.series.key(keyOf{pool: s.Pool, key: s.Key})
	key.arrivals.Inc()
	key.refused.Inc()
	m.recent.arrived(of, at(s))
	m.recent.turnedAway(of, true, at(s))
}

// lastTried returns the last worker that was tried in vain, "" if none was.
func lastTried(s *message.Seen) string {
	if n := len(s.Attempts); n > 0 {
		return s.Attempts[n-1].Worker
	}
	return ""
}

// Answered implements front.Meter: it counts a request that front refused, or that the router itself answered. No label
// comes from the client.
func (m *Metrics) Answered(s *message.Seen) {
	if s.Counted {
		return
	}
	s.Counted = true
	model := ""
	if s.Worker != "" && s.Model != "" {
		model = m.series.models.known(s.Model)
	}
	m.series.answer(answerOf{pool: s.Pool, strategy: s.Strategy, model: model, worker: m.named(s.Worker),
		code: int(s.Status)}).Inc()
}

// SessionRefused implements journal.Meter.
func (m *Metrics) SessionRefused(pool, code string) {
	m.series.counter(sessionRefusals, pool, strings.TrimPrefix(code, "session_")).Inc()
}

// Placed implements journal.Meter. The request's status is not known yet: Answered counts it.
func (m *Metrics) Placed(s *message.Seen, took time.Duration) {
	m.strategyOf(s).duration.Observe(took.Seconds())
}

// Prefilled implements journal.Meter.
func (m *Metrics) Prefilled(pool string, result journal.Prefilled) {
	m.series.counter(prefills, pool, string(result)).Inc()
	for _, ill := range [...]journal.Prefilled{journal.PrefillNone, journal.PrefillFailed, journal.PrefillUnnamed,
		journal.PrefillLost} {
		m.series.counter(prefills, pool, string(ill)) // an alert sees no rate of a series that begins above 0
	}
	switch result {
	case journal.PrefillDone, journal.PrefillNone, journal.PrefillFailed, journal.PrefillUnnamed:
		m.recent.prefilled(pool, result == journal.PrefillNone, time.Now())
	}
}

// Retried implements journal.Meter.
func (m *Metrics) Retried(pool, reason string) { m.series.counter(retries, pool, reason).Inc() }

// Continued implements journal.Meter.
func (m *Metrics) Continued(pool string, result journal.Continuation) {
	m.series.counter(continuations, pool, string(result)).Inc()
}

// Hinted implements journal.Meter.
func (m *Metrics) Hinted(pool string, result route.HintResult) {
	m.series.counter(kvHints, pool, string(result)).Inc()
}

// FellBack implements journal.Meter.
func (m *Metrics) FellBack(model, to, reason string) {
	known := m.series.models.known
	m.series.counter(modelFallbacks, known(model), known(to), reason).Inc()
}

// AdapterCall counts a call to a worker about an adapter.
func (m *Metrics) AdapterCall(pool, call, result string) {
	m.series.counter(adapterCalls, pool, call, result).Inc()
}

// Foreign implements journal.Meter.
func (m *Metrics) Foreign(pool, worker string) { m.series.counter(foreign, pool, worker).Inc() }

// Shed implements journal.Meter.
func (m *Metrics) Shed(pool, reason string) { m.series.counter(shed, pool, reason).Inc() }

// Tokens implements the meter of package tokens.
func (m *Metrics) Tokens(pool, outcome string) { m.series.counter(tokens, pool, outcome).Inc() }

// FirstByte implements journal.Meter.
func (m *Metrics) FirstByte(s *message.Seen) {
	m.firstOutputOf(s).ttft.Observe(s.FirstByte.Seconds())
	m.recent.firstOutput(s, at(s))
}

// Ended implements journal.Meter. The code is 499 for a client that left, 502 for an answer that broke off or
// reported a failure.
func (m *Metrics) Ended(s *message.Seen, e journal.End) {
	code := e.Status
	switch e.Outcome.Kind {
	case judge.Canceled:
		code = 499
	case judge.Broken, judge.Leaving:
		code = 502
	case judge.Failed:
		if code < 500 { // reported inside an answer that had begun well
			code = 502
		}
	}
	model := s.Model
	if code >= 400 && code < 500 { // 404 among them: a worker that lists no models gets requests for any name
		model = m.series.models.known(model)
	}
	if e.Translated && (code == e.Status || e.Status >= 300) { // Answered counts it, by the status after translation
		if code < 400 {
			m.series.models.label(model)
		}
	} else {
		m.series.answer(answerOf{pool: s.Pool, strategy: s.Strategy, model: model, worker: m.named(s.Worker),
			code: code}).Inc()
		s.Counted = true
	}
	m.strategyOf(s).duration.Observe(e.Took.Seconds())
	m.recent.ended(s, code < 400 || code == 499, at(s))
	if code < 400 {
		m.series.countTokens(s)
	}
	if s.Stream && s.FirstByte > 0 && e.Outcome.Kind == judge.Answered && e.Outcome.Tokens > 1 {
		between := (e.Took - s.FirstByte).Seconds() / float64(e.Outcome.Tokens-1)
		m.firstOutputOf(s).itl.Observe(max(0, between))
	}
}
