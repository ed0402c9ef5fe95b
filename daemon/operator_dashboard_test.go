package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

const deployed = "../deploy"

// needTool skips a test whose tool is not there. CI installs it, and fails without.
func needTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%v: .ci/run is to install it", err)
		}
		t.Skipf("NOT TESTED: there is no %s; Debian's package prometheus has it", name)
	}
	return path
}

// exported is what docs/metrics.md lists: the labels of each metric, and le of a histogram's series.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| ((?:warmpath_|lmcache:)\w+) \| (\w+) \| ([^|]*) \|`).FindAllStringSubmatch(string(page), -1) {
		labels := strings.Split(strings.TrimSpace(m[3]), ", ")
		if m[2] != "histogram" {
			all[m[1]] = labels
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			all[m[1]+suffix] = append(slices.Clone(labels), "le")
		}
	}
	if len(all) < 50 {
		t.Fatalf("docs/metrics.md lists %d metrics", len(all))
	}
	return all
}

var (
	seriesNamed = regexp.MustCompile(`((?:warmpath_|lmcache:)\w+)(?:\{((?:[^}"]|"[^"]*")*)\})?`)
	labelNamed  = regexp.MustCompile(`(\w+)\s*(?:=|!)[=~]?\s*"`)
)

// checkNames fails if text names a metric, or selects by a label, that the daemon does not export.
func checkNames(t *testing.T, where, text string, known map[string][]string) {
	t.Helper()
	for _, m := range seriesNamed.FindAllStringSubmatch(text, -1) {
		labels, ok := known[m[1]]
		if !ok {
			t.Errorf("%s names %s, which the daemon does not export", where, m[1])
			continue
		}
		for _, l := range labelNamed.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "instance" && l[1] != "job" && !slices.Contains(labels, l[1]) {
				t.Errorf("%s: %s has no label %s; it has %v", where, m[1], l[1], labels)
			}
		}
	}
}

// panel is what is read of a dashboard's panels.
type panel struct {
	Title   string
	Panels  []panel // of a row that is folded
	Targets []struct{ Expr string }
}

// dashboard reads the panels that ship, and the metrics that its variables are made of.
func dashboard(t *testing.T) (panels []panel, variables []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployed, "grafana", "warmpath.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels     []panel
		Templating struct {
			List []struct {
				Type  string
				Query string
			}
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			variables = append(variables, v.Query)
		}
	}
	if len(d.Panels) < 20 || len(variables) == 0 {
		t.Fatalf("%d panels, %d variables", len(d.Panels), len(variables))
	}
	for _, p := range d.Panels {
		panels = append(append(panels, p), p.Panels...)
	}
	return panels, variables
}

// TestDeployedNamesAreExported: the dashboard, the rules, and the series of the rules' own tests.
func TestDeployedNamesAreExported(t *testing.T) {
	known := exported(t)
	panels, variables := dashboard(t)
	for _, p := range panels {
		for _, q := range p.Targets {
			checkNames(t, "panel "+p.Title, q.Expr, known)
		}
	}
	checkNames(t, "the dashboard's variables", strings.Join(variables, "\n"), known)
	for _, file := range []string{"alerts.yml", "alerts_test.yml", "hyperpod.yml"} {
		text, err := os.ReadFile(filepath.Join(deployed, "prometheus", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range strings.Split(string(text), "\n") {
			if !strings.HasPrefix(strings.TrimSpace(l), "#") {
				checkNames(t, file, l, known)
			}
		}
	}
}

// unpanelled are the metrics without a panel, and why.
var unpanelled = map[string]string{
	"warmpath_pool_workers_outside":                 "it follows from subset and the number of workers; the page and status name them",
	"warmpath_build_info":                           "the dashboard's variables are made of it",
	"warmpath_module_info":                          "its value is always 1: its labels say what serves",
	"warmpath_key_limit":                            "Limits of keys shows the share of it that is used",
	"warmpath_pool_keys_shut_out":                   "an alert fires, and warmpath status names the keys",
	"warmpath_worker_weights_version":               "of fleets that are trained; /api/v1/pools and the page have it",
	"warmpath_index_nodes":                          "Prefix index shows its blocks",
	"warmpath_history_replay_messages":              "of a moment after the start; the log has it",
	"warmpath_history_replayed_messages":            "likewise",
	"warmpath_kv_events_skipped_total":              "what engines send beside what the index needs is no sign of anything",
	"warmpath_kv_events_state":                      "KV events shows how many are live; /api/v1 has each state",
	"warmpath_kv_hints_total":                       "of pools with kv_hints alone; the decisions name each hint",
	"warmpath_kv_l2_copied_total":                   "for those who work on the router",
	"warmpath_conversation_move_seconds_total":      "the panel of conversations that move shows what was moved",
	"warmpath_cache_wishes_total":                   "of few strategies; /api/v1/decisions has each",
	"warmpath_conversation_bytes":                   "hand_over_bytes bounds it",
	"warmpath_kv_token_bytes":                       "a property of a model",
	"warmpath_shadow_fuel_total":                    "warmpath shadow compares them over a time of your choice",
	"warmpath_shadow_held_tokens_total":             "likewise",
	"warmpath_shadow_seconds_total":                 "likewise",
	"warmpath_state_file_written_timestamp_seconds": "State file shows failures, and an alert its age",
}

// TestEveryMetricHasAPanel, or a reason why it has none.
func TestEveryMetricHasAPanel(t *testing.T) {
	var shown strings.Builder
	panels, _ := dashboard(t)
	for _, p := range panels {
		for _, q := range p.Targets {
			shown.WriteString(q.Expr + "\n")
		}
	}
	for name := range exported(t) {
		of := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if unpanelled[name] == "" && !regexp.MustCompile(of+`\b|`+of+`_(bucket|sum|count)\b`).MatchString(shown.String()) {
			t.Errorf("%s has no panel: give it one in deploy/grafana/warmpath.json, or say here why not", name)
		}
	}
}

// TestEveryAlertFires: each has a test that breaks what it watches, and one in which it is silent.
func TestEveryAlertFires(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(needTool(t, "promtool"), "test", "rules", filepath.Join(deployed, "prometheus", "alerts_test.yml")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	rules, _ := os.ReadFile(filepath.Join(deployed, "prometheus", "alerts.yml"))
	tests, _ := os.ReadFile(filepath.Join(deployed, "prometheus", "alerts_test.yml"))
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	if len(alerts) < 10 {
		t.Fatalf("alerts.yml has %d alerts", len(alerts))
	}
	for _, a := range alerts {
		fires := regexp.MustCompile(`expr: ALERTS\{alertname="` + a[1] + `",[^\n]*\n[^\n]*\n +exp_samples: \[\{`)
		silent := regexp.MustCompile(`expr: ALERTS\{alertname="` + a[1] + `",[^\n]*\n[^\n]*\n +exp_samples: \[\]`)
		if !fires.Match(tests) || !silent.Match(tests) {
			t.Errorf("alerts_test.yml does not test that %s fires, and that it is silent", a[1])
		}
	}
}

// TestScalerWantsWorkers: the query of the KEDA object is the one that is tested beside it, and its metrics are ours.
func TestScalerWantsWorkers(t *testing.T) {
	t.Parallel()
	known := exported(t)
	for name, objects := range map[string]int{"scaledobject": 1, "roles": 2} {
		file := filepath.Join(deployed, "keda", name+"_test.yml")
		out, err := exec.Command(needTool(t, "promtool"), "test", "rules", file).CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		object, _ := os.ReadFile(filepath.Join(deployed, "keda", name+".yaml"))
		tests, _ := os.ReadFile(file)
		queries := regexp.MustCompile(`(?m)^ +query: (.*)$`).FindAllSubmatch(object, -1)
		if len(queries) != objects {
			t.Fatalf("%s has %d queries", name, len(queries))
		}
		cases, same := strings.Count(string(tests), "- expr: "), 0
		for _, q := range queries {
			n := strings.Count(string(tests), "- expr: "+string(q[1])+"\n")
			if n < 5 {
				t.Errorf("%s: %d tests of %s", name, n, q[1])
			}
			same += n
			checkNames(t, name, string(q[1]), known)
		}
		if cases != same {
			t.Errorf("%s: %d of %d tests are of its queries", name, same, cases)
		}
	}
}

// TestMonitoringPage: the commands of the page run as they stand.
func TestMonitoringPage(t *testing.T) {
	t.Parallel()
	needTool(t, "promtool")
	page, err := os.ReadFile("../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindStringSubmatch(string(page))
	if commands == nil {
		t.Fatal("the page has no commands")
	}
	cmd := exec.Command("bash", "-euc", commands[1])
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "SUCCESS") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}

// patiently waits for another process on a machine that may do much else.
func patiently(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// prom is a Prometheus that scrapes a daemon once a second.
type prom struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, scrapes ...string) *prom {
	t.Helper()
	bin := needTool(t, "prometheus")
	dir := t.TempDir()
	rules, err := filepath.Abs(filepath.Join(deployed, "prometheus"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "prometheus.yml")
	write(t, file, fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%s/alerts.yml, %s/hyperpod.yml]\n"+
		"scrape_configs: [{job_name: warmpath, static_configs: [{targets: ['%s']}]}]\n", rules, rules, strings.Join(scrapes, "','")))
	at := porttest.Address(t)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, bin, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at)
	log := new(strings.Builder)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log)
		}
	})
	p := &prom{t: t, url: "http://" + at}
	patiently(t, "Prometheus is ready", func() bool { s := do(t, "GET", p.url+"/-/ready", ""); return s.status == 200 })
	return p
}

// get asks the API for a path and reads its data.
func (p *prom) get(path string, data any) (wrong string) {
	p.t.Helper()
	s := do(p.t, "GET", p.url+path, "")
	if s.err != nil {
		return s.err.Error()
	}
	reply := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.Unmarshal([]byte(s.body), &reply); err != nil {
		p.t.Fatalf("%s: %v: %s", path, err, s.body)
	}
	return reply.Error
}

// values are the numbers that a query gives now.
func (p *prom) values(query string) (all []float64, wrong string) {
	p.t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	wrong = p.get("/api/v1/query?query="+url.QueryEscape(query), &data)
	for _, r := range data.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			p.t.Fatal(err)
		}
		if !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	return all, wrong
}

// alerts are the names of those that fire or would, if it went on.
func (p *prom) alerts() (names []string) {
	p.t.Helper()
	for _, labels := range p.stirring() {
		names = append(names, labels["alertname"])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// stirring are the labels of these alerts.
func (p *prom) stirring() (all []map[string]string) {
	p.t.Helper()
	var data struct {
		Alerts []struct{ Labels map[string]string }
	}
	if wrong := p.get("/api/v1/alerts", &data); wrong != "" {
		p.t.Fatal(wrong)
	}
	for _, a := range data.Alerts {
		all = append(all, a.Labels)
	}
	return all
}

// loaded runs four clients with growing chats until the test ends.
func loaded(t *testing.T, r *running) {
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				m := []chatMessage{{"user", fmt.Sprint(i, n/5, strings.Repeat(" The harbour at night. ", 40))}}
				for turn := range n % 5 {
					m = append(m, chatMessage{"assistant", fmt.Sprint(turn)}, chatMessage{"user", "And then?"})
				}
				r.do("POST", "/v1/chat/completions", chatBody(n%2 == 0, m), "X-Session-Id", fmt.Sprint(i))
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	t.Cleanup(func() { cancel(); clients.Wait() })
}

// TestDashboardAndAlertsUnderLoad: every query of the dashboard and HyperPod's names have data, no alert stirs; then
// the workers die and a reload is refused, and those of that do.
func TestDashboardAndAlertsUnderLoad(t *testing.T) {
	t.Parallel()
	f := sims(t, 3, vllmsim.Config{})
	r := start(t, bindAlways+settings("prefixaware", f.URLs()...), 3)
	p := startPrometheus(t, r.AdminAddr())
	loaded(t, r)
	panels, _ := dashboard(t)
	queries := []string{"model_invocations_total", "model_errors_total or vector(0)", "model_concurrent_requests",
		"model_latency_milliseconds_sum", "model_latency_milliseconds_count", "model_ttfb_milliseconds_sum", "model_ttfb_milliseconds_count"}
	fill := strings.NewReplacer("$__rate_interval", "30s", "$instance", ".*", "$pool", ".*", "$worker", ".*", "$job", ".*")
	for _, panel := range panels {
		for _, q := range panel.Targets {
			queries = append(queries, fill.Replace(q.Expr))
		}
	}
	for _, q := range queries {
		patiently(t, "data of "+q, func() bool {
			got, wrong := p.values(q)
			if wrong != "" {
				t.Fatalf("%s: %s", q, wrong)
			}
			return len(got) > 0
		})
	}
	if got, _ := p.values(`sum(model_invocations_total)`); len(got) != 1 || got[0] <= 0 {
		t.Errorf("model_invocations_total is %v", got)
	}
	if got := p.alerts(); len(got) > 0 {
		t.Errorf("under normal load these alerts stir: %v", got)
	}
	for _, s := range f {
		if err := s.SetFault(vllmsim.Fault{Mode: vllmsim.FaultDie}); err != nil {
			t.Fatal(err)
		}
	}
	write(t, r.file, "[server]\nlisten = 1\n")
	if err := r.Reload(); err == nil {
		t.Fatal("a wrong file was taken up")
	}
	patiently(t, fmt.Sprint(afterLoad, " stir"), func() bool {
		got := p.alerts()
		return !slices.ContainsFunc(afterLoad, func(a string) bool { return !slices.Contains(got, a) })
	})
}

// afterLoad are the alerts that TestDashboardAndAlertsUnderLoad provokes; the others are in TestEveryAlertStirs.
var afterLoad = []string{"WarmpathConfigRefused", "WarmpathErrors", "WarmpathPoolEmpty", "WarmpathWorkerDown"}
