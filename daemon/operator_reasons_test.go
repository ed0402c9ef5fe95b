package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/daemon/request/record"
)

// status is what warmpath status is made of.
func (r *running) status() (o operator.Overview) {
	s := r.admin("GET", "/api/v1/overview", "")
	if err := json.Unmarshal([]byte(s.body), &o); err != nil {
		r.t.Fatalf("%v: %s", err, s.body)
	}
	return o
}

// warned waits for a warning whose title and text have these words.
func (r *running) warned(words ...string) operator.Overview {
	r.t.Helper()
	var o operator.Overview
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		o = r.status()
		for _, w := range o.Warnings {
			all := true
			for _, word := range words {
				all = all && strings.Contains(w.Title+": "+w.Text, word)
			}
			if all {
				return o
			}
		}
	}
	r.t.Fatalf("no warning has %q: %+v", words, o.Warnings)
	return o
}

// ready returns the status and the answer of /ready for clients.
func (r *running) ready() (int, string) {
	s := r.do("GET", "/ready", "")
	return s.status, s.body
}

// TestAtZero: a pool whose requests wait for a worker is ready: if a load balancer left the router out, nothing would ask
// for one.
func TestAtZero(t *testing.T) {
	t.Parallel()
	at := porttest.Address(t)
	r := start(t, strings.Replace(withPool(settings("prefixaware", "http://"+at), "queue = { wait_empty = \"60s\" }"), `["*"]`, `["sim"]`, 1), 0)
	for end := time.Now().Add(5 * time.Second); r.status().Pools[0].Rests == ""; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the pool does not rest")
		}
	}
	if code, text := r.ready(); code != 200 || r.metric("warmpath_pool_ready") != 1 || r.metric("warmpath_pool_rests") != 1 {
		t.Errorf("at zero: %d %s", code, text)
	}
	asked := make(chan int, 1)
	go func() { asked <- r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`).status }()
	r.warned("requests of main wait for a worker", "1, 1m0s each at most", "no worker is up")
	f, err := vllmsim.StartFleet(at, 1, vllmsim.Config{Speed: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if code := <-asked; code != 200 {
		t.Errorf("%d for the request that waited", code)
	}
	if o := r.status(); o.Pools[0].Rests != "" || r.metric("warmpath_pool_rests") != 0 {
		t.Errorf("with a worker: %+v", o.Pools[0].PoolState)
	}
}

// TestWaitsForItsLimit: what waits for a limit of its key is not shown as what waits for room.
func TestWaitsForItsLimit(t *testing.T) {
	t.Parallel()
	toml := limited(t, "tenant", "requests_per_minute = 20") + withPool(settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), "max_in_flight = 8")
	r := start(t, toml, 1)
	for range 9 {
		go r.as("tenant", "POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`)
	}
	o := r.warned("key tenant is at its limit", "requests_per_minute = 20", "wait in the router, whatever room the workers have")
	if f := o.Pools[0].Queue.Flows[0]; f.Limit != "requests_per_minute" || o.Pools[0].WaitsFor(f.Limit) != "its key's requests_per_minute" {
		t.Errorf("%+v", f)
	}
	eventually(t, "all that wait do so for a limit", func() bool {
		n := r.metric("warmpath_queue_limited")
		return n >= 1 && n == r.metric("warmpath_queue_depth")
	})
	type decision struct {
		Limit string `json:"waits_for"`
		Open  bool
	}
	var all []decision
	r.decided("/api/v1/decisions", &all)
	if !slices.Contains(all, decision{"requests_per_minute", true}) {
		t.Errorf("decisions %+v", all)
	}
}

// TestCanaryThatRejects: a canary that turns its share away is named with it.
func TestCanaryThatRejects(t *testing.T) {
	t.Parallel()
	wasm, err := wasmtest.Assemble(rejects)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rejects.wasm")
	write(t, file, string(wasm))
	r := start(t, withPool(settings("prefixaware", sims(t, 2, vllmsim.Config{}).URLs()...),
		"canary = [{ strategy = \"mine\", header = \"x-canary=1\" }]")+fmt.Sprintf("[strategies.mine]\npath = %q\n", file), 2)
	time.Sleep(1200 * time.Millisecond) // the trends have seen none
	for range 3 {
		if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":429}`, "X-Canary", "1"); s.status != 429 {
			t.Fatalf("%d %s", s.status, s.body)
		}
	}
	o := r.warned("canary mine of main turns requests away", "3 that the pool's own strategy would have sent")
	if got := o.Pools[0].Canaries; len(got) != 1 || got[0] != "mine (x-canary=1)" {
		t.Errorf("canaries %q", got)
	}
}

// TestCanaryThatFails: a canary that fails on its share, and is not set aside yet, is named with a request of its own.
func TestCanaryThatFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "trap.wasm")
	module(t, "trap.wat", file)
	r := start(t, withPool(settings("prefixaware", sims(t, 5, vllmsim.Config{}).URLs()...),
		"canary = [{ strategy = \"mine\", header = \"x-canary=1\" }]")+fmt.Sprintf("[strategies.mine]\npath = %q\n", file), 5)
	time.Sleep(1200 * time.Millisecond) // the trends have seen none
	r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`, "X-Canary", "1", "X-Request-Id", "fails")
	r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`, "X-Request-Id", "of-the-other")
	for _, w := range r.warned("canary mine of main fails", "1 that went by the fallback").Warnings {
		if strings.Contains(w.Title, "canary") && !strings.Contains(w.Command, " why fails --admin "+r.AdminAddr()) {
			t.Errorf("%+v", w)
		}
	}
}

// TestCrashLoop: a worker that restarts again and again has a name.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, settings("prefixaware", f.URLs()...), 2)
	for n := range 3 {
		time.Sleep(1100 * time.Millisecond) // start times that differ by less are one process
		if err := f[0].Restart(); err != nil {
			t.Fatal(err)
		}
		patiently(t, "the restart is seen", func() bool {
			return r.metric("warmpath_worker_restarts_total", `worker="w1"`) > float64(n)
		})
	}
	r.warned("w1 keeps restarting", "3 restarts in 5 min")
	if w := r.status().Pools[0].Workers[0]; w.Restarts != 3 || time.Since(w.Restarted) > time.Minute {
		t.Errorf("%d restarts, the last at %v", w.Restarts, w.Restarted)
	}
	if n := r.metric("warmpath_worker_restarts_total", `worker="w1"`); n != 3 {
		t.Errorf("%v restarts", n)
	}
	if n := r.metric("warmpath_worker_restarts_total", `worker="w2"`); n != 0 {
		t.Errorf("%v restarts of the other", n)
	}
}

// TestKeyRefusedByAll: a pool whose workers all refuse the router's key answers nothing but 502, and is not ready.
func TestKeyRefusedByAll(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, "wrong-secret")
	f := sims(t, 2, vllmsim.Config{APIKey: "worker-secret"})
	r := start(t, withPool(settings("prefixaware", f.URLs()...), fmt.Sprintf("worker_key_file = %q", key)), 0)
	r.warned("pool main cannot serve", readiness.WhyKey)
	if code, text := r.ready(); code != http.StatusServiceUnavailable || !strings.Contains(text, "worker_key_file") {
		t.Errorf("%d %s", code, text)
	}
	write(t, key, "worker-secret")
	if s := r.admin("POST", "/api/v1/reload", ""); s.status != 200 {
		t.Fatalf("%d %s", s.status, s.body)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		code, text := r.ready()
		if code == 200 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not ready with the right key: %s", text)
		}
	}
}

// TestAliasAstray: an alias whose target no worker lists is named with it, and goes to its fallback.
func TestAliasAstray(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{Models: []string{"sim-v2"}})
	aliases := "[[models]]\nname = \"chat\"\nto = [{ model = \"sim\" }]\n[[models]]\nname = \"safe\"\nto = [{ model = \"sim\" }]\nfallback = \"sim-v2\"\n"
	r := start(t, aliases+settings("prefixaware", f.URLs()...), 1)
	o := r.warned("alias chat leads to sim, which no worker lists",
		"its clients get an error; the workers list sim-v2: correct to of [[models]], or --served-model-name of the workers")
	r.warned("alias safe leads to sim, which no worker lists", "its clients get answers of sim-v2; the workers list")
	if got := fmt.Sprint(o.Pools[0].Aliases); got != "[chat leads to sim safe leads to sim]" {
		t.Errorf("aliases %s", got)
	}
	if s := r.do("POST", "/v1/completions", `{"model":"safe","prompt":"x","max_tokens":1}`); s.status != 200 || s.header.Get("X-Warmpath-Fallback") != "down" {
		t.Errorf("with a fallback: %d %s", s.status, s.body)
	}
	if s := r.do("POST", "/v1/completions", `{"model":"chat","prompt":"x","max_tokens":1}`); s.status != 404 {
		t.Errorf("without one: %d %s", s.status, s.body)
	}
}

// TestAliasOfAMissingAdapter: an alias of an adapter that the workers have refused to load is named; one that none was
// asked for is not.
func TestAliasOfAMissingAdapter(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{MaxLoras: 2})
	r := start(t, "[[models]]\nname = \"chat\"\nto = [{ model = \"missing-1\" }]\n[[models]]\nname = \"good\"\nto = [{ model = \"there\" }]\n"+
		withAdapters(settings("prefixaware", f.URLs()...)), 2)
	if o := r.status(); len(o.Warnings) > 0 {
		t.Fatalf("before a request: %+v", o.Warnings)
	}
	r.ask("chat")
	r.ask("good")
	for _, w := range r.warned("alias chat leads to missing-1, which no worker lists", "source of [pools.adapters]").Warnings {
		if strings.Contains(w.Title, "good") {
			t.Errorf("%+v", w)
		}
	}
}

// splits are the prefills of the latest decisions, the newest first.
func (f *rolesFleet) splits() (all []struct {
	Open  bool
	Split *record.Split `json:"split"`
}) {
	f.decided("/api/v1/decisions", &all)
	return all
}

// TestAPrefillIsShown: a decision has the prefiller while that computes the prompt, and why another long prompt had none.
func TestAPrefillIsShown(t *testing.T) {
	t.Parallel()
	h := &hang{url: onPrompts}
	f := startRolesWith(t, 1, 1, rolesOptions{beforePrefiller: func(w *vllmsim.Server) string { return h.url(t, h, w.URL()) }})
	h.stuck.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = f.ask(ctx, "tide", 1500, true) }()
	eventually(t, "the prefiller is named", func() bool {
		all := f.splits()
		return len(all) > 0 && all[0].Open && all[0].Split != nil && all[0].Split.Prefiller == "w1" && all[0].Split.Result == "begun"
	})

	f = startRolesWith(t, 1, 1, rolesOptions{rule: "sooner"})
	for range 2 { // the second one lacks little
		if err := f.ask(t.Context(), "tide", 1500, false); err != nil {
			t.Fatal(err)
		}
	}
	s := f.splits()[0].Split
	if s == nil || s.Result != "not_needed" || !strings.Contains(s.Why, "fewer than threshold") {
		t.Errorf("split %+v", s)
	}
}

// TestPrefillersDown: no prompt finds a prefiller, and one warning says that none is up.
func TestPrefillersDown(t *testing.T) {
	t.Parallel()
	f := startRoles(t, 1, 1)
	if err := f.prefill[0].Kill(); err != nil {
		t.Fatal(err)
	}
	f.warned("no prefiller of main serves", "long prompts are computed where they are answered")
}
