package metrics

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/cache/kvstore/spill"
	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/readiness/readinesstest"
	"github.com/warmpath/warmpath/daemon/admin/strategies"
	"github.com/warmpath/warmpath/daemon/admin/tracing"
	"github.com/warmpath/warmpath/daemon/fleet/feed"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/kv/hyperpod"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
	"github.com/warmpath/warmpath/daemon/kv/resp"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/waiting"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
	"github.com/warmpath/warmpath/host"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

const listFile = "../../../docs/metrics.md"

// TestMetricsAreListed: docs/metrics.md matches a registry with a series of every metric, and the registry matches the
// declarations. To write it anew: go test ./daemon/admin/metrics -run Listed -update.
func TestMetricsAreListed(t *testing.T) {
	gathered := gather(t)
	for _, m := range declared {
		if got, ok := gathered[m.name]; !ok {
			t.Errorf("%s is declared, and nothing sends it", m.name)
		} else if want := row(m.name, string(m.kind), m.labels, m.help); got != want {
			t.Errorf("the registry answers\n%s\nwhat is declared is\n%s", got, want)
		}
		delete(gathered, m.name)
	}
	for _, line := range gathered {
		t.Errorf("not declared: %s", line)
	}
	want := list()
	if *update {
		if err := os.WriteFile(listFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(listFile); err != nil || string(got) != want {
		t.Errorf("docs/metrics.md is not the list of metrics (%v): go test ./daemon/admin/metrics -run Listed -update", err)
	}
}

// gather returns the row of each metric of ours by its name, from a registry in which all have values.
func gather(t *testing.T) map[string]string {
	t.Helper()
	m := NewMetrics("test")
	everySeries(m)
	p := readinesstest.NewFleet(t, "a")
	p.Events = feed.New(feed.Config{Index: p.Held, Workers: p.Workers.Stats, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(p.Events.Close)
	p.Events.Configure(map[string]feed.Origin{"a": {Events: "tcp://127.0.0.1:1"}}, nil)
	p.Events.Tick(time.Now())
	p.Queue, p.Pairing = waiting.New(waiting.Config{}), &epoch.Pairing{}
	m.registry.MustRegister(everyCount{metrics: m, pool: p.Pool}, strategyCollector{})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "warmpath_") && !strings.HasPrefix(f.GetName(), "lmcache:") {
			continue
		}
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		rows[f.GetName()] = row(f.GetName(), strings.ToLower(f.GetType().String()), labels, f.GetHelp())
	}
	return rows
}

// everyCount sends what collector sends of a process in which all is on.
type everyCount struct {
	metrics *Metrics
	pool    *readiness.Pool
}

func (everyCount) Describe(chan<- *prometheus.Desc) {}

func (e everyCount) Collect(ch chan<- prometheus.Metric) {
	n := counts{
		process: e.metrics.process(),
		store: tier.Stats{Namespaces: map[string]tier.NamespaceStats{"session/key/p": {Entries: 1}},
			L2: tier.L2Stats{Configured: true}},
		kv: kvcache.Stats{Store: kvstore.Stats{Refused: map[string]uint64{"full": 1}}, RESP: &resp.Stats{},
			HyperPod: &hyperpod.Stats{}, Spill: &spill.Stats{},
			L2:     &remote.Stats{Servers: []remote.ServerStats{{Address: "a:1", Refuses: "oom"}}},
			Tokens: chunks.Estimate{Models: make([]chunks.Model, 1)}},
		kvOpen:  true,
		lmcache: lmcache.Stats{On: true},
		peers:   peers.Stats{On: true, Pools: []peers.PoolStats{{Name: "p", Dropped: map[string]uint64{"gap": 0}}}},
		memory:  peers.Written{On: true, At: time.Unix(1, 0)},
		spans:   tracing.Stats{On: true},
		certs:   []certificate.Stats{{Listener: "server"}},
		limits:  []limit.Stats{{Key: "k", Limits: limit.Limits{InFlight: 1}, InFlight: 1}},
	}
	n.send(ch)
	sendPools(ch, []*readiness.Pool{e.pool}, &e.metrics.recent, "all")
}

// strategyCollector sends the readings of a strategy: a fleet of this test has none.
type strategyCollector struct{}

func (strategyCollector) Describe(chan<- *prometheus.Desc) {}

func (strategyCollector) Collect(ch chan<- prometheus.Metric) {
	collect(ch, ofStrategies, strategyCounts{Stats: host.Stats{Metrics: map[string]float64{"hits": 1}}}, "p", "s")
	collect(ch, ofShadows, strategies.Report{}, "p", "s")
	collect(ch, ofShadowQueues, 0, "p")
	collect(ch, ofLMCacheAt, &worker.LMCache{}, "p", "w")
}

// row returns a metric's line of the list. Its labels are in alphabetical order, as Prometheus returns them.
func row(name, kind string, labels []string, help string) string {
	return fmt.Sprintf("| %s | %s | %s | %s |\n", name, kind, strings.Join(slices.Sorted(slices.Values(labels)), ", "), help)
}

// list returns the content of docs/metrics.md.
func list() string {
	var rows []string
	for _, m := range declared {
		rows = append(rows, row(m.name, string(m.kind), m.labels, m.help))
	}
	slices.Sort(rows)
	return "# Metrics\n\nWhat `GET /metrics` on `server.admin` answers. Go's own, `go_` and `process_`, come in addition, as " +
		"the client library for Go gives them.\nThis list is written by a test: " +
		"`go test ./daemon/admin/metrics -run Listed -update`.\n\n" +
		"| name | type | labels | what it says |\n| --- | --- | --- | --- |\n" + strings.Join(rows, "")
}

func TestStrategyMetricsAreRead(t *testing.T) {
	m := NewMetrics("test")
	m.registry.MustRegister(strategyCollector{})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "warmpath_strategy_metric" && len(f.Metric) == 1 && f.Metric[0].GetGauge().GetValue() == 1 {
			return
		}
	}
	t.Error("what a module counts is not shown")
}

func TestReloadIsShown(t *testing.T) {
	m := NewMetrics("test")
	f := func(want bool) {
		t.Helper()
		if got := m.process().reloaded; got != want {
			t.Errorf("the last reload succeeded: %v; want %v", got, want)
		}
	}
	f(true)
	m.Reloaded(Reload{})
	f(false)
	m.Reloaded(Reload{OK: true})
	f(true)
}
