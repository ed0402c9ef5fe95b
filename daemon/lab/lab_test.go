package lab

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/report"
	"github.com/warmpath/warmpath/daemon/lab/served"
	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/plugins"
)

// compare runs strategies on scenarios, each cut to so many requests, with one seed.
func compare(t *testing.T, scenarios []string, requests int, names ...string) []*trial.Run {
	t.Helper()
	return compareSeeds(t, Config{Seeds: []uint64{7}}, scenarios, requests, names...)
}

// compareSeeds is compare with the seeds of a configuration.
func compareSeeds(t *testing.T, c Config, scenarios []string, requests int, names ...string) []*trial.Run {
	t.Helper()
	c.Processors = 2
	for _, scenario := range scenarios {
		sc, err := setup.Read(scenario)
		if err != nil {
			t.Fatal(err)
		}
		sc.Requests = requests
		c.Scenarios = append(c.Scenarios, sc)
	}
	for _, name := range names {
		found, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		c.Strategies = append(c.Strategies, found...)
	}
	runs, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Two runs of one seed are equal to the byte, in every request's times and worker, under a worker's death, several
// routers and tiers too.
func TestTwoRunsAreEqual(t *testing.T) {
	scenarios, names := []string{"A", "X", "L", "routers"}, []string{"prefixaware", "kvaware", "session", "peer:dynamo",
		"native:prefixaware@4/10ms"}
	a, b := compare(t, scenarios, 250, names...), compare(t, scenarios, 250, names...)
	for i := range a {
		if x, y := marshal(t, a[i]), marshal(t, b[i]); x != y {
			t.Errorf("%s under %s: two runs of one seed differ, decisions %x and %x", a[i].Scenario, a[i].Strategy,
				a[i].Decisions, b[i].Decisions)
		}
	}
	if a[0].Decisions == a[2].Decisions {
		t.Error("two strategies chose alike throughout")
	}
}

// A module and its native form choose alike in every decision of a run.
func TestModulesChooseAsTheirNativeForm(t *testing.T) {
	r := compare(t, []string{"E", "G", "X", "T"}, 250, "prefixaware", "native:prefixaware", "kvaware", "native:kvaware",
		"session", "native:session", "roundrobin", "native:roundrobin")
	for i := 0; i < len(r); i += 2 {
		module, native := r[i], r[i+1]
		if module.Decisions != native.Decisions || module.Fallbacks+native.Fallbacks != 0 {
			t.Errorf("%s under %s: the module's decisions are %x with %d fallbacks, the native form's %x with %d",
				module.Scenario, module.Strategy, module.Decisions, module.Fallbacks, native.Decisions, native.Fallbacks)
		}
	}
}

// The report of a module that fails says that its figures are the host's.
func TestAReportTellsOfFallbacks(t *testing.T) {
	wasm, err := wasmtest.File("../../testdata/modules/trap.wat")
	if err != nil {
		t.Fatal(err)
	}
	sc, err := setup.Read("A")
	if err != nil {
		t.Fatal(err)
	}
	sc.Requests = 50
	c := Config{Scenarios: []*setup.Scenario{sc}, Strategies: []Strategy{{Name: "trap.wasm",
		spec: served.Spec{Name: "trap", Wasm: wasm}}}, Seeds: []uint64{7, 8}, Processors: 2}
	runs, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	r := Report(&c, runs)
	one, two := r.Runs[0].Figures.Fallbacks, r.Runs[1].Figures.Fallbacks // not all: the module is well while 3 workers are up
	want := fmt.Sprintf("A: trap.wasm failed or declined, and the host chose in its place, on %d of 100 requests; "+
		"warmpath plugin check says why", one+two)
	if one < 40 || two < 40 || !slices.Contains(r.Conditions, want) {
		t.Errorf("%d and %d fallbacks of 50 requests each, and %q; want 40 at least, and the line %q", one, two, r.Conditions, want)
	}
}

// asks turns a request away without its header x-tier, and declines without a caller, labels or the store.
const asks = `(module
	(import "warmpath_v1" "str" (func $str (param i32 i32 i32 i32) (result i32)))
	(import "warmpath_v1" "kv_incr" (func $incr (param i32 i32 i64 i32) (result i64)))
	(memory (export "memory") 1) (data (i32.const 0) "x-tier")
	(func (export "warmpath_abi_1_1"))
	(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
	(func (export "wp_pick") (result i64)
		i32.const 6 i32.const 6 i32.const 0 i32.const 0 call $str i32.const 4 i32.ne if
			i32.const 1176 i32.const 403 i32.store i64.const 0xfffffffe return end
		i32.const 0 i32.const 6 i64.const 1 i32.const 0 call $incr i64.const 1 i64.lt_s if i64.const 0xffffffff return end
		i32.const 1152 i64.load i64.eqz if i64.const 0xffffffff return end
		i32.const 1168 i32.load i32.const 2 i32.ne if i64.const 0xffffffff return end
		i64.const 0))`

// TestAStrategyHasItsWorld: what a strategy asks for is there, where a scenario and --allow give it; where they do not,
// the report says what was missing.
func TestAStrategyHasItsWorld(t *testing.T) {
	wasm, err := wasmtest.Assemble(asks)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tenants.toml")
	const scenario = `like = "A"
requests = 40
workers = 3
[[worker]]
count = 2
labels = { for = "acme" }
slowness = 2.0
[[worker]]
labels = { for = "other" }
[[class]]
rate = 0.5
user = 100
output = 10
key = "acme"
headers = { x-tier = "gold" }
`
	if err := os.WriteFile(file, []byte(scenario), 0o644); err != nil {
		t.Fatal(err)
	}
	sc, err := setup.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, allow := range [][]string{{"kv", "headers:x-tier"}, nil, {"headers:x-tier"}} {
		s := Strategy{Name: "asks.wasm", spec: served.Spec{Name: "asks", Wasm: wasm}}
		s.Allow(allow)
		c := Config{Scenarios: []*setup.Scenario{sc}, Strategies: []Strategy{s}, Seeds: []uint64{7}, Processors: 1}
		runs, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		said, lines := runs[0].Remarks, strings.Join(remarks(runs), "\n")
		n := len(runs[0].Outcomes)
		switch {
		case len(allow) == 2:
			if said.Fallbacks+said.Rejected+len(said.Refused) > 0 || lines != "" {
				t.Errorf("with all that it asks for: %+v\n%s", said, lines)
			}
		case allow == nil:
			want := fmt.Sprintf("tenants: asks.wasm turned %d of %d requests away, the last with: 403\n", n, n)
			if said.Rejected != n || !strings.HasPrefix(lines, want) || !strings.Contains(lines, "may not: --allow headers:x-tier") {
				t.Errorf("without allow: %+v\n%s", said, lines)
			}
		default:
			if said.Fallbacks != n || !strings.Contains(lines, "may not: --allow kv") {
				t.Errorf("without the store: %+v\n%s", said, lines)
			}
		}
	}
}

// Four routers that share nothing know of each other's work by the workers' events alone.
func TestKVAwareSeesWhatOthersDid(t *testing.T) {
	r := compare(t, []string{"routers"}, 400, "native:prefixaware", "native:kvaware")
	if history, events := figures(r[0]).HitRate(), figures(r[1]).HitRate(); events < history+.1 {
		t.Errorf("by history %.3f of the prompts were cached, by events %.3f; want a tenth more at least", history, events)
	}
}

// Four routers that send each other what they do, late by 10 ms, choose as well as one; four that do not are far from
// it.
func TestRoutersThatShareAreAsOne(t *testing.T) {
	r := compare(t, []string{"B", "T"}, 1000, "native:prefixaware", "native:prefixaware@4/10ms", "native:prefixaware@4")
	for i := 0; i < len(r); i += 3 {
		mean := func(k int) float64 { return trial.Mean(r[i+k].Values((*trial.Outcome).TTFT)) }
		one, shared, apart := mean(0), mean(1), mean(2)
		if shared > 1.1*one || figures(r[i+1]).HitRate() < figures(r[i]).HitRate()-.02 || apart < 1.5*one {
			t.Errorf("%s: mean TTFT %.3f s by one router, %.3f s by four that share, %.3f s by four that do not; hits %.3f, %.3f",
				r[i].Scenario, one, shared, apart, figures(r[i]).HitRate(), figures(r[i+1]).HitRate())
		}
	}
}

// A fleet whose worker dies while others' requests are in flight there loses none of its own.
func TestRoutersThatShareAndADeath(t *testing.T) {
	check(t, "X", compare(t, []string{"X"}, 600, "native:prefixaware@4/50ms")[0], 600)
}

// In every scenario each request ends once, and what the requests got is what the workers did.
func TestNothingIsLost(t *testing.T) {
	var scenarios []string
	for _, name := range setup.Names() {
		if sc, err := setup.Read(name); err != nil {
			t.Fatal(err)
		} else if sc.Trace.File == "" {
			scenarios = append(scenarios, name)
		}
	}
	for _, r := range compare(t, scenarios, 120, "native:prefixaware", "peer:leastrequests") {
		check(t, r.Scenario, r, 120)
	}
}

func check(t *testing.T, scenario string, r *trial.Run, want int) {
	t.Helper()
	if len(r.Outcomes) != want {
		t.Errorf("%s under %s: %d requests; want %d", scenario, r.Strategy, len(r.Outcomes), want)
	}
	sent, repeated, cached, generated := 0, 0, 0, 0
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		sent += o.Attempts
		repeated += max(0, o.Attempts-1)
		cached += o.Cached
		generated += o.Output
		good := o.Status == trial.Answered && o.First > o.Arrived && o.Ended >= o.First && o.Output > 0 && o.Cached < o.Prompt &&
			o.CPU+o.Shared <= o.Cached && o.Worker >= 0
		broken := o.Status == trial.Broken && o.Attempts > 0 && o.Ended >= o.Arrived
		refused := o.Status == trial.Refused && o.First == 0
		if !good && !broken && !refused {
			t.Fatalf("%s under %s: request %d ended as %+v", scenario, r.Strategy, i, *o)
		}
	}
	var w trial.Worker
	for _, one := range r.Workers {
		w.Requests += one.Requests
		w.CachedTokens += one.CachedTokens
		w.Generated += one.Generated
	}
	w.Requests -= r.Prefills
	w.Generated -= int64(r.Prefills)
	w.CachedTokens -= r.Handed
	if w.Requests != sent || repeated == 0 && (int(w.CachedTokens) != cached || int(w.Generated) != generated) {
		t.Errorf("%s under %s: the requests were sent %d times, found %d tokens cached and got %d; the workers say %+v",
			scenario, r.Strategy, sent, cached, generated, w)
	}
	if slices.ContainsFunc([]float64{figures(r).Throughput(), r.Imbalance(), r.GPUSeconds}, func(v float64) bool {
		return math.IsNaN(v) || v <= 0
	}) {
		t.Errorf("%s under %s: throughput %v, imbalance %v, %v GPU seconds", scenario, r.Strategy, figures(r).Throughput(),
			r.Imbalance(), r.GPUSeconds)
	}
}

// TestParts: behind an @ stands who computes the prompts of a scenario with roles. The rule that learns what a transfer
// takes decides as the one that is told. Prompts that others compute do not hold up an answer. Prefillers that answer
// too do so at first, while nothing is known of the load.
func TestParts(t *testing.T) {
	r := compare(t, []string{"pd-8k"}, 400, "native:prefixaware@colocated", "native:prefixaware@split",
		"native:prefixaware", "native:prefixaware@learnt", "native:prefixaware@answering")
	n := len(r[0].Outcomes)
	for i, least := range []int{0, n, n * 9 / 10, n * 9 / 10, n / 2} {
		if got := r[i].Prefills; got < least || least == 0 && got > 0 {
			t.Errorf("%s: %d prefills for others of %d prompts; want %d or more", r[i].Strategy, got, n, least)
		}
		if i > 0 && r[i].ITLP99 > r[0].ITLP99/2 {
			t.Errorf("%s: P99 between tokens of %v; want half of %v at most", r[i].Strategy, r[i].ITLP99, r[0].ITLP99)
		}
	}
}

func TestFind(t *testing.T) {
	f := func(name string, want int, peer bool) {
		t.Helper()
		found, err := Find(name)
		if (err == nil) != (want > 0) || want > 0 && (len(found) < want || found[0].Peer != peer) {
			t.Errorf("%q: %d strategies, %v; want %d, of others %v", name, len(found), err, want, peer)
		}
	}
	f("prefixaware", 1, false)
	f("roundrobin@gpu", 1, false)
	f("native:kvaware@l1", 1, false)
	f("roundrobin@l3", 0, false)
	f("prefixaware@hard", 1, false)
	f("prefixaware@unnamed", 1, false)
	f("prefixaware@4", 1, false)
	f("prefixaware@16/50ms", 1, false)
	f("prefixaware@0", 0, false)
	f("prefixaware@4/", 0, false)
	f("prefixaware@4/-1ms", 0, false)
	f("prefixaware@colocated", 1, false)
	f("prefixaware@split", 1, false)
	f("prefixaware@learnt", 1, false)
	f("prefixaware@answering", 1, false)
	f("prefixaware@colocate", 0, false)
	f("peer:roundrobin", 1, true)
	f("dynamo scale=64 credit=3", 1, true)
	f("peers", 10, true)
	f("missing.wasm", 0, false)
	f("native:nobody", 0, false)
	f("native:prefixaware x=1", 0, false)
}

// Options behind a module's name reach it.
func TestOptionsOfAModule(t *testing.T) {
	wasm, err := plugins.Builtin("prefixaware")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "my own.wasm")
	if err := os.WriteFile(path, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	sc, err := setup.Read("A")
	if err != nil {
		t.Fatal(err)
	}
	sc.Requests = 20
	for _, name := range []string{path, "prefixaware"} {
		found, err := Find(name + " prefix_length=4 eech=.5@gpu")
		if err != nil || !maps.Equal(found[0].spec.Options, map[string]string{"prefix_length": "4", "eech": ".5"}) ||
			found[0].tier != gpuAlone {
			t.Fatalf("%s: %+v, %v; want both options", name, found, err)
		}
		c := Config{Scenarios: []*setup.Scenario{sc}, Strategies: found, Seeds: []uint64{7}, Processors: 1}
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "eech") {
			t.Errorf("%s: %v; want that it does not know eech", name, err)
		}
	}
}

func figures(r *trial.Run) *report.Figures {
	f := report.FromTrial(r, false).Figures
	return &f
}

// TestMixedFleet: with SGLang's metrics of some workers the requests wait no longer than with vLLM's of all.
func TestMixedFleet(t *testing.T) {
	runs := compare(t, []string{"mixed"}, 700, "native:prefixaware", "native:kvaware")
	sc, err := setup.Read("mixed")
	if err != nil {
		t.Fatal(err)
	}
	sc.Kinds, sc.Requests = nil, 700
	for _, mixed := range runs {
		strategies, err := Find(mixed.Strategy)
		if err != nil {
			t.Fatal(err)
		}
		alike, err := Run(t.Context(), Config{Scenarios: []*setup.Scenario{sc}, Strategies: strategies, Seeds: []uint64{7}})
		if err != nil {
			t.Fatal(err)
		}
		got, want := trial.Mean(mixed.Values((*trial.Outcome).TTFT)), trial.Mean(alike[0].Values((*trial.Outcome).TTFT))
		if !(got < 1.03*want) {
			t.Errorf("%s: mean TTFT %.4f s; with vLLM alone %.4f s", mixed.Strategy, got, want)
		}
	}
}
