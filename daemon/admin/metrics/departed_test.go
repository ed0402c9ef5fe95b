package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/readiness/readinesstest"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
)

// served counts a request of pool "p" that a worker answered.
func served(m *Metrics, name string) {
	seen := &message.Seen{Record: record.Record{Pool: "p", Strategy: "s", Worker: name, Model: "m", PromptBlocks: 1}}
	m.Picked(seen)
	m.FirstByte(seen)
	m.Ended(seen, journal.End{Status: 200, Outcome: judge.Outcome{Kind: judge.Answered}})
}

// seriesOf counts the series of a worker, or with "" of pool "p".
func seriesOf(t *testing.T, m *Metrics, name string) (n int) {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, s := range f.Metric {
			for _, l := range s.Label {
				if l.GetName() == "worker" && l.GetValue() == name || name == "" && l.GetName() == "pool" {
					n++
				}
			}
		}
	}
	return n
}

func TestSweep(t *testing.T) {
	m := NewMetrics("test")
	g := NewDeparted(m, time.Minute)
	p := readinesstest.NewFleet(t, "a b")
	served(m, "a")
	served(m, "b")
	began := time.Now()
	f := func(after time.Duration, configured bool, a, b bool) {
		t.Helper()
		var pools []*readiness.Pool
		if configured {
			pools = []*readiness.Pool{p.Pool}
		}
		g.Sweep(pools, began.Add(after))
		if gotA, gotB := seriesOf(t, m, "a") > 0, seriesOf(t, m, "b") > 0; gotA != a || gotB != b {
			t.Fatalf("after %v: series of a %v, of b %v; want %v, %v", after, gotA, gotB, a, b)
		}
	}
	f(0, true, true, true)
	p.Remove("b")
	f(time.Second, true, true, true)
	f(60*time.Second, true, true, true)
	served(m, "b") // its last request: the stay began when it left
	f(61*time.Second, true, true, false)
	served(m, "b") // a straggler's series goes too
	f(62*time.Second, true, true, true)
	f(122*time.Second, true, true, false)

	g.Leave(p.Pool)
	f(200*time.Second, false, true, false)
	f(230*time.Second, true, true, false) // it came back: the stay begins anew
	g.Leave(p.Pool)
	f(261*time.Second, false, true, false)
	f(322*time.Second, false, false, false)
	if n := seriesOf(t, m, ""); n != 0 {
		t.Errorf("%d series of the pool are left", n)
	}
	served(m, "a") // counts anew, and does not fail
	if n := seriesOf(t, m, "a"); n == 0 {
		t.Error("a request after the sweep is counted nowhere")
	}
}

// TestWhatGoesWithAPool: every metric with the label pool loses the pool's series, whichever file declares it.
func TestWhatGoesWithAPool(t *testing.T) {
	m := NewMetrics("test")
	everySeries(m)
	m.series.forget(owner{pool: "pool"})
	if n := seriesOf(t, m, ""); n != 0 {
		t.Errorf("%d series of the pool are left", n)
	}
}

// everySeries makes a series of every counter and histogram. Each label has its own name as its value.
func everySeries(m *Metrics) {
	for i, c := range counters {
		m.series.counter(counter(i), c.labels...)
	}
	for i, h := range histograms {
		m.series.histogram(histogram(i), h.labels...).Observe(1)
	}
}

func TestTwoMetricsOfOneNameArePanic(t *testing.T) {
	defer func() {
		if got := fmt.Sprint(recover()); got != "BUG: metrics: two metrics are called warmpath_worker_up" {
			t.Errorf("panic %q", got)
		}
	}()
	declare(metric{name: "worker_up"})
}

// TestWorkerMetrics: with gauges a worker has three series, and requests count for the pool; with none it has none.
func TestWorkerMetrics(t *testing.T) {
	m, p := NewMetrics("test"), readinesstest.NewFleet(t, "a b")
	m.registry.MustRegister(poolsCollector{m, p.Pool})
	f := func(which string, labelled, requests int) {
		t.Helper()
		m.ByWorker(which)
		m.Answered(&message.Seen{Record: record.Record{Pool: "p", Strategy: "s", Worker: "a"}, Status: 200})
		all, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		named, counted := 0, 0
		for _, family := range all {
			for _, one := range family.Metric {
				for _, l := range one.Label {
					if l.GetName() == "worker" && l.GetValue() != "" {
						named++
					}
				}
				if family.GetName() == "warmpath_requests_total" {
					counted += int(one.Counter.GetValue())
				}
			}
		}
		if named != labelled || counted != requests {
			t.Errorf("%s: %d series of workers, %d requests; want %d, %d", which, named, counted, labelled, requests)
		}
	}
	f("all", 2*(len(ofFleets)+len(ofWorkers))+1, 1)
	f("gauges", 2*len(ofFleets), 1) // the worker's own count is gone
	f("none", 0, 2)
	f("all", 2*(len(ofFleets)+len(ofWorkers))+1, 3)
}

// poolsCollector collects the readings of one pool.
type poolsCollector struct {
	m *Metrics
	p *readiness.Pool
}

func (poolsCollector) Describe(chan<- *prometheus.Desc) {}

func (c poolsCollector) Collect(ch chan<- prometheus.Metric) {
	sendPools(ch, []*readiness.Pool{c.p}, &c.m.recent, c.m.byWorker())
}
