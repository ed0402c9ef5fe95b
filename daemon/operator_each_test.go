package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// sleeper is a worker with vLLM's orders. It says of itself that it sleeps only on its page of metrics.
type sleeper struct {
	url     string
	asleep  atomic.Bool
	paused  atomic.Bool
	refuses atomic.Bool
	fails   atomic.Bool            // it answers that it did not do what was asked
	got     atomic.Pointer[string] // the last order, with its body
}

func newSleeper(t *testing.T, name string) *sleeper {
	s := new(sleeper)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/metrics":
			for _, state := range []string{"awake", "weights_offloaded"} {
				fmt.Fprintf(w, "vllm:engine_sleep_state{sleep_state=%q} %d\n", state, map[bool]int{true: 1}[(state == "awake") != s.asleep.Load()])
			}
		case r.URL.Path == "/is_paused":
			fmt.Fprintf(w, `{"is_paused":%v}`, s.paused.Load())
		case r.URL.Path == "/v1/models":
			io.WriteString(w, `{"object":"list","data":[{"id":"sim","object":"model"}]}`)
		case r.URL.Path == "/v1/completions":
			w.Header().Set("Worker", name)
			io.WriteString(w, `{"choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`)
		case r.Method == "POST" && s.refuses.Load():
			http.Error(w, "the engine is busy", http.StatusServiceUnavailable)
		case r.Method == "POST":
			body, _ := io.ReadAll(r.Body)
			text := r.URL.RequestURI() + " " + string(body) + " " + r.Header.Get("Authorization")
			s.got.Store(&text)
			if r.URL.Path == "/sleep" || r.URL.Path == "/wake_up" {
				s.asleep.Store(r.URL.Path == "/sleep")
			}
			if r.URL.Path == "/pause" || r.URL.Path == "/resume" {
				s.paused.Store(r.URL.Path == "/pause")
			}
			if s.fails.Load() {
				io.WriteString(w, `{"success":false}`)
				return
			}
			io.WriteString(w, "done")
		case r.URL.Path != "/health":
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// TestOrdersToAllWorkers: an order goes to each worker, and is answered with what each said. The router knows at once
// what it has done: who sleeps gets no request, and emptied caches hold nothing.
func TestOrdersToAllWorkers(t *testing.T) {
	t.Parallel()
	a, b := newSleeper(t, "w1"), newSleeper(t, "w2")
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "sesame-sesame")
	toml := withServer(settings("prefixaware", a.url, b.url), fmt.Sprintf("admin_token_file = %q", token))
	r := start(t, strings.Replace(toml, `scrape_interval = "100ms"`, "slow_start = \"0s\"\nscrape_interval = \"100ms\"", 1), 2)
	each := func(status int, query, body string) (o operator.Ordered) {
		t.Helper()
		s := do(t, "POST", "http://"+r.AdminAddr()+"/api/v1/pools/main/each?"+query, body, "Authorization", "Bearer sesame-sesame")
		if json.Unmarshal([]byte(s.body), &o) != nil || s.status != status || o.OK != (status == 200) {
			t.Fatalf("%s: %d %s; want %d", query, s.status, s.body, status)
		}
		return o
	}
	long := `{"model":"sim","prompt":"` + strings.Repeat("the same text ", 100) + `","max_tokens":1}`
	matched := func() string {
		s := r.do("POST", "/v1/completions", long, "X-Warmpath-Explain", "1")
		return s.header.Get("X-Warmpath-Matched-Blocks")
	}
	if matched(); matched() == "0" {
		t.Fatal("the index does not know the prompt")
	}
	o := each(200, "path=/reset_prefix_cache%3Freset_running_requests=true", "")
	if len(o.Workers) != 2 || o.Workers[0].Status != 200 || o.Workers[0].Answer != "done" || *a.got.Load() != "/reset_prefix_cache?reset_running_requests=true  " {
		t.Errorf("%+v, the worker got %q", o, *a.got.Load())
	}
	if got := matched(); got != "0" {
		t.Errorf("after the reset of all caches %s blocks are believed to be there", got)
	}
	each(200, "path=/sleep%3Flevel=1", `{"x":1}`)
	if s := r.do("POST", "/v1/completions", hello); s.status != 503 || *b.got.Load() != `/sleep?level=1 {"x":1} ` {
		t.Errorf("with all asleep: %d %s; the worker got %q", s.status, s.body, *b.got.Load())
	}
	if w := r.describe()[0].Workers[0]; w.State != "asleep" {
		t.Errorf("%s is shown as %s", w.ID, w.State)
	}
	each(200, "path=/wake_up", "")
	eventually(t, "both are awake", func() bool {
		return r.describe()[0].Workers[0].State == "up" && r.describe()[0].Workers[1].State == "up"
	})
	b.refuses.Store(true)
	o = each(502, "path=/pause&timeout=5s", "")
	if len(o.Workers) != 2 || !strings.Contains(fmt.Sprint(o.Workers), "503 the engine is busy") || o.Workers[0].Status != 200 {
		t.Errorf("one refuses: %+v", o)
	}
	for query, status := range map[string]int{"path=/collective_rpc/x": 400, "path=/pause&parallel=0": 400, "path=/pause&path=/x": 400, "path=/v1/completions": 400, "path=": 400,
		"path=/pause%0d%0aX:y": 400, "path=/pause/../x": 400, "path=/pause&timeout=1h": 400} {
		each(status, query, "")
	}
	if s := do(t, "POST", "http://"+r.AdminAddr()+"/api/v1/pools/none/each?path=/pause", "", "Authorization", "Bearer sesame-sesame"); s.status != 404 {
		t.Errorf("no such pool: %d %s", s.status, s.body)
	}
	if s := do(t, "POST", "http://"+r.AdminAddr()+"/api/v1/pools/main/each?path=/pause", ""); s.status != 401 {
		t.Errorf("without the token: %d %s", s.status, s.body)
	}
}

// TestWhatAnOrderDoesToTheCache: by its mode, level and answer; and a paused worker is shown as such, and is back without
// a slow start.
func TestWhatAnOrderDoesToTheCache(t *testing.T) {
	t.Parallel()
	a := newSleeper(t, "w1")
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, adminToken)
	r := start(t, withServer(settings("prefixaware", a.url), fmt.Sprintf("admin_token_file = %q", token)), 1)
	each := func(path string) {
		t.Helper()
		if s := r.admin("POST", "/api/v1/pools/main/each?path="+url.QueryEscape(path), ""); s.status != 200 {
			t.Fatalf("%s: %d %s", path, s.status, s.body)
		}
	}
	long := `{"model":"sim","prompt":"` + strings.Repeat("the same text ", 100) + `","max_tokens":1}`
	state := func() string { return r.describe()[0].Workers[0].State }
	f := func(path, then, state2 string, keeps bool) {
		t.Helper()
		r.do("POST", "/v1/completions", long)
		if r.shown()[0].Index.Stats().Blocks == 0 {
			t.Fatal("the index does not know the prompt")
		}
		each(path)
		if got := state(); got != state2 {
			t.Errorf("%s: %s; want %s", path, got, state2)
		}
		if got := r.shown()[0].Index.Stats().Blocks > 0; got != keeps {
			t.Errorf("%s: the router believes that the cache is kept: %v; want %v", path, got, keeps)
		}
		if then != "" {
			each(then)
		}
		eventually(t, "it is up", func() bool { return state() == "up" })
	}
	f("/pause?mode=keep&clear_cache=false", "/resume", "paused", true)
	f("/pause?mode=keep", "/resume", "paused", false)
	f("/pause?mode=wait&clear_cache=false", "/resume", "paused", true)
	f("/pause", "/resume", "paused", false)
	f("/pause?mode=wait", "/resume", "paused", false)
	f("/sleep?level=0", "/wake_up?tags=scheduling", "paused", true)
	f("/sleep", "/wake_up", "asleep", false)
	f("/reset_prefix_cache", "", "up", false)
	f("/update_weights", "", "up", true)
	f("/finish_weight_update", "", "up", true)
	a.fails.Store(true)
	f("/reset_prefix_cache", "", "up", true)
}

// TestAPauseThatSomebodyElseSent: its requests wait, and their waiting says nothing of the worker.
func TestAPauseThatSomebodyElseSent(t *testing.T) {
	t.Parallel()
	a := newSleeper(t, "w1")
	r := start(t, settings("prefixaware", a.url), 1)
	a.paused.Store(true)
	r.shown()[0].Workers.Paused("w1", time.Now())
	eventually(t, "it is paused", func() bool { return r.describe()[0].Workers[0].State == "paused" })
	time.Sleep(300 * time.Millisecond) // pages of metrics ask again whether it is
	if s := r.do("POST", "/v1/completions", hello); s.status != 200 || r.describe()[0].Workers[0].State != "paused" {
		t.Errorf("a request that no other worker takes: %d %s at a worker that is %s", s.status, s.body, r.describe()[0].Workers[0].State)
	}
	a.paused.Store(false)
	eventually(t, "it goes on", func() bool { return r.describe()[0].Workers[0].State == "up" })
}

// TestSleepThatKeepsTheCache: at level 0 an engine stops its scheduler alone. Its page says that it is not awake, and at no
// deeper level, however long that lasts and whoever sent the call.
func TestSleepThatKeepsTheCache(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{DevMode: true})
	r := start(t, settings("prefixaware", f.URLs()...), 1)
	state := func() string { return r.describe()[0].Workers[0].State }
	long := `{"model":"sim","prompt":"` + strings.Repeat("the same text ", 100) + `","max_tokens":1}`
	for _, c := range []struct {
		path, state string
		keeps       bool
	}{{"/sleep?level=0&mode=keep", "paused", true}, {"/sleep?level=1", "asleep", false}, {"/sleep?level=2", "asleep", false}} {
		r.do("POST", "/v1/completions", long)
		if r.shown()[0].Index.Stats().Blocks == 0 {
			t.Fatal("the index does not know the prompt")
		}
		if s := do(t, "POST", f[0].URL()+c.path, ""); s.status != 200 {
			t.Fatalf("%s: %d %s", c.path, s.status, s.body)
		}
		eventually(t, "it is "+c.state, func() bool { return state() == c.state })
		if got := r.shown()[0].Index.Stats().Blocks > 0; got != c.keeps {
			t.Errorf("%s: the router believes that the cache is kept: %v; want %v", c.path, got, c.keeps)
		}
		if s := do(t, "POST", f[0].URL()+"/wake_up", ""); s.status != 200 {
			t.Fatalf("wake_up: %d %s", s.status, s.body)
		}
		eventually(t, "it is up", func() bool { return state() == "up" })
		if got := r.shown()[0].Index.Stats().Blocks > 0; got != c.keeps {
			t.Errorf("%s, awake again: the router believes that the cache is kept: %v; want %v", c.path, got, c.keeps)
		}
	}
}
