package daemon

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// readyAnswer is what /ready says.
type readyAnswer struct {
	status int
	Ready  bool
	Pools  []operator.PoolBrief
}

func (r *running) readiness() (got readyAnswer) {
	r.t.Helper()
	s := r.do("GET", "/ready", "")
	if err := json.Unmarshal([]byte(s.body), &got); err != nil {
		r.t.Fatalf("%v: %s", err, s.body)
	}
	got.status = s.status
	return got
}

// TestAPoolThatNoWorkerCanServeIsTold: the patterns of a pool and the names that its workers serve differ, the first
// mistake of everybody.
func TestAPoolThatNoWorkerCanServeIsTold(t *testing.T) {
	t.Parallel()
	q, l := sims(t, 1, vllmsim.Config{Models: []string{"Qwen/qwen3"}}), sims(t, 1, vllmsim.Config{Models: []string{"llama"}})
	var toml strings.Builder
	toml.WriteString("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n")
	addPool(&toml, "qwen", "prefixaware", "qwen", q.URLs()...)
	r, lines := startLogged(t, toml.String(), 1)
	const warned = "no worker lists a model that the pool's patterns fit: its requests are refused; correct models of the pool, or --served-model-name of the workers"
	w := lines.wait(t, warned)
	if w["level"] != "WARN" || w["pool"] != "qwen" || fmt.Sprint(w["patterns"]) != "[qwen]" || fmt.Sprint(w["they_list"]) != "[Qwen/qwen3]" {
		t.Errorf("the line is %v; want WARN with pool, patterns and the models listed", w)
	}
	got := r.readiness()
	if got.status != 200 || got.Pools[0].Ready || got.Pools[0].WhyNot != readiness.WhyUnfit || got.Pools[0].Up != 1 {
		t.Errorf("/ready: %+v; want 200, as /endpoints/qwen/invocations is served, and a pool that is not ready, and why", got)
	}
	if s := r.do("POST", "/endpoints/qwen/invocations", `{"prompt":"x"}`); s.status != 200 {
		t.Errorf("the pool named as an endpoint: %d %s; want 200", s.status, s.body)
	}
	ask := func() string {
		s := r.do("POST", "/v1/completions", `{"model":"qwen","prompt":"x"}`)
		if s.status != 503 || s.header.Get("Retry-After") == "" {
			t.Errorf("%d %s; want 503 with Retry-After: its workers may be away", s.status, s.body)
		}
		return s.body
	}
	if body := ask(); !strings.Contains(body, `list \"Qwen/qwen3\"`) {
		t.Errorf("the 503 does not name what the workers list: %s", body)
	}
	addPool(&toml, "llama", "prefixaware", "llama", l.URLs()...)
	text := strings.Replace(toml.String(), "[server]", "[server]\nexplain = false", 1)
	write(t, r.file, text)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if body := ask(); strings.Contains(body, "Qwen") {
		t.Errorf("explain is off, and the 503 names the workers' models: %s", body)
	}
	eventually(t, "ready by the other pool", func() bool { got = r.readiness(); return got.status == 200 })
	if got.Pools[0].Ready || !got.Pools[1].Ready {
		t.Errorf("/ready: %+v; want the second pool ready alone", got)
	}
	write(t, r.file, strings.Replace(text, `models = ["qwen"]`, `models = ["Qwen/*"]`, 1))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	lines.wait(t, "a worker lists a model that the pool's patterns fit")
	if n := len(lines.with(t, warned)); n != 1 {
		t.Errorf("warned %d times; want once", n)
	}
}

// TestAnEmptyPoolIsAnError: the last worker that is up is drained, or dies.
func TestAnEmptyPoolIsAnError(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r, lines := startLogged(t, settings("prefixaware", f.URLs()...), 2)
	const told, over = "the pool has no worker that is up: its requests get 503", "the pool has a worker again"
	drain := func(method, id string) (answer map[string]any) {
		t.Helper()
		s := do(t, method, "http://"+r.AdminAddr()+"/api/v1/pools/main/workers/"+id+"/drain", "")
		if err := json.Unmarshal([]byte(s.body), &answer); err != nil || s.status != 200 {
			t.Fatalf("%d %v %s", s.status, err, s.body)
		}
		return answer
	}
	if a := drain("POST", "w1"); a["warning"] != nil || a["until"] == nil {
		t.Errorf("the first drain answers %v; want no warning, and how long it lasts", a)
	}
	if got := r.metric("warmpath_worker_draining", `worker="w1"`) + r.metric("warmpath_worker_up", `worker="w2"`); got != 2 {
		t.Errorf("draining of w1 and up of w2: %v; want 2", got)
	}
	if got := r.metric("warmpath_worker_draining"); got != 1 {
		t.Errorf("%v are draining; want 1", got)
	}
	before := time.Now()
	if err := f[1].SetFault(vllmsim.Fault{Mode: vllmsim.FaultDie}); err != nil {
		t.Fatal(err)
	}
	l := lines.wait(t, told)
	if l["level"] != "ERROR" || l["pool"] != "main" || !strings.HasPrefix(fmt.Sprint(l["workers"]), "[w1: draining w2: down: ") {
		t.Errorf("the line is %v; want ERROR with the pool and what each worker is", l)
	}
	if got := r.metric("warmpath_worker_draining"); got != 1 {
		t.Errorf("%v are draining; a worker that is down is none of them", got)
	}
	if got := r.readiness(); got.status != 503 || got.Pools[0].WhyNot != readiness.WhyEmpty {
		t.Errorf("/ready: %+v; want 503: no worker is up", got)
	}
	w := r.describe()[0].Workers[1]
	if w.State != "down" || w.Since.Before(before) || w.ErrorAt.Before(before) || w.LastError == "" || w.ErrorOver {
		t.Errorf("w2 is %+v; want since when it is down, and its error with its time, not over", w)
	}
	if err := f[1].SetFault(vllmsim.Fault{Mode: vllmsim.FaultNone}); err != nil {
		t.Fatal(err)
	}
	lines.wait(t, over)
	was := w.Since
	if w = r.describe()[0].Workers[1]; w.State != "up" || !w.Since.After(was) || !w.ErrorOver {
		t.Errorf("w2 is %+v; want since when it is up, and its error over", w)
	}
	if a := drain("POST", "w2"); a["warning"] == nil {
		t.Errorf("the drain of the last worker answers %v; want a warning", a)
	}
	eventually(t, "a second line", func() bool { return len(lines.with(t, told)) == 2 })
	drain("DELETE", "w2")
	eventually(t, "a second recovery", func() bool { return len(lines.with(t, over)) == 2 })
}

// TestAnEmptyPoolThatPanics: with panic = true nobody gets the 503 that the line would else foretell.
func TestAnEmptyPoolThatPanics(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r, lines := startLogged(t, strings.Replace(settings("prefixaware", f.URLs()...), "[[pools]]\n", "[[pools]]\npanic = true\n", 1), 1)
	if err := f[0].SetFault(vllmsim.Fault{Mode: vllmsim.FaultDie}); err != nil {
		t.Fatal(err)
	}
	if l := lines.wait(t, "the pool has no worker that is up: its requests go to one that is not (panic = true)"); l["level"] != "ERROR" {
		t.Errorf("the line is %v; want ERROR", l)
	}
	if got := r.readiness(); got.status != 200 || !got.Pools[0].Ready || got.Pools[0].Up != 0 || got.Pools[0].WhyNot != readiness.WhyPanics {
		t.Errorf("/ready: %+v; want 200 and why, or a load balancer takes the last resort away", got)
	}
	if s := do(t, "POST", "http://"+r.AdminAddr()+"/api/v1/pools/main/workers/w1/drain", ""); s.status != 200 {
		t.Fatalf("%d %s", s.status, s.body)
	}
	if got := r.readiness(); got.status != 503 || got.Pools[0].WhyNot != readiness.WhyEmpty {
		t.Errorf("/ready: %+v; want 503: panic gives nothing to a worker that was asked to drain", got)
	}
}

// TestBareRefusalsOfAWorkerGetWords: SDKs show an empty message for Starlette's own.
func TestBareRefusalsOfAWorkerGetWords(t *testing.T) {
	r := start(t, settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), 1)
	for path, want := range map[string]string{
		"/v1/files":          `{"error":{"message":"the worker serves no POST /v1/files","type":"invalid_request_error","param":null,"code":"unknown_url"}}`,
		"/v1/messages/batch": `{"type":"error","error":{"type":"not_found_error","message":"the worker serves no POST /v1/messages/batch"}}`,
	} {
		if s := r.do("POST", path, `{}`); s.status != 404 || s.body != want {
			t.Errorf("%s: %d %s; want 404 %s", path, s.status, s.body, want)
		}
	}
	for _, path := range []string{"/", "/api/v1"} {
		if s := do(t, "GET", "http://"+r.AdminAddr()+path, ""); s.status != 200 || !strings.Contains(s.body, "/api/v1/pools") {
			t.Errorf("%s of the operator's listener: %d %s; want what there is", path, s.status, s.body)
		}
	}
}
