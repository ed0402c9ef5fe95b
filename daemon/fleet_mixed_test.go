package daemon

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
)

// TestMixedFleet: before four workers of vLLM and four of SGLang the router reads queue, KV use, size and speed of
// either, and follows the KV events of either.
func TestMixedFleet(t *testing.T) {
	c := published(events.Map)
	c.KVTokens, c.MaxSeqs, c.Speed = 1<<16, 2, 4
	urls := sims(t, 4, c).URLs()
	c.Engine = vllmsim.EngineSGLang
	theirs := sims(t, 4, c)
	toml := settings("kvaware", append(urls, theirs.URLs()...)...)
	for _, s := range theirs { // SGLang has no /kv_event_sources
		url := fmt.Sprintf("url = %q\n", s.URL())
		toml = strings.Replace(toml, url, fmt.Sprintf("%skv_events = %q\nkv_events_replay = %q\n", url, s.Events().Endpoint,
			s.Events().Replay), 1)
	}
	r := start(t, poolKeys(toml, "kv_events = \"auto\"\n"), 8)
	r.awaitLive(8)
	var clients sync.WaitGroup
	for i := range 64 {
		clients.Go(func() {
			said := fmt.Sprint(i) + strings.Repeat(" the tide tables of a port", 700)
			if s := r.do("POST", "/v1/chat/completions", chatBody(true, []chatMessage{{"user", said}})); s.status != 200 ||
				!strings.Contains(s.body, "[DONE]") {
				t.Errorf("%d %s", s.status, s.body)
			}
		})
	}
	seen := map[string]int{}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && len(seen) < 16; time.Sleep(50 * time.Millisecond) {
		for _, w := range r.state.Load().pools[0].route.Workers.Stats(time.Now()) {
			if w.Running > 0 && w.KVUsage > 0 && w.Capacity >= 1<<16-16 { // vLLM's has a null block
				seen["load "+w.ID]++
			}
			if w.Waiting > 0 {
				seen["queue "+w.ID]++
			}
		}
	}
	clients.Wait()
	if len(seen) < 16 {
		t.Errorf("of 8 workers the router saw %v; want load and queue of each", seen)
	}
	held := r.events()
	for _, w := range r.state.Load().pools[0].route.Workers.Stats(time.Now()) {
		if w.Unread || w.PrefixQueries == 0 || held[w.ID].Held.Blocks == 0 {
			t.Errorf("%s: %+v, events %+v; want its prefix cache and its blocks", w.ID, w, held[w.ID])
		}
	}
}

// TestMixedSpeed: a slow worker of either engine is known by its metrics alone, before the router has sent it a request.
func TestMixedSpeed(t *testing.T) {
	t.Parallel()
	var urls []string
	for _, c := range []vllmsim.Config{{}, {Slowness: 4}, {Engine: vllmsim.EngineSGLang},
		{Engine: vllmsim.EngineSGLang, Slowness: 4}} {
		c.Speed = 10
		urls = append(urls, sims(t, 1, c).URLs()...)
	}
	r := start(t, settings("prefixaware", urls...), 4)
	slow := make([]float64, 4)
	for turn := range 60 {
		for _, url := range urls {
			said := fmt.Sprint(turn) + strings.Repeat(" the tide tables of a port", 600)
			body := fmt.Sprintf(`{"model":"sim","max_tokens":1,"prompt":%q}`, said) // of one token, which has no time between two
			if s := do(t, "POST", url+"/v1/completions", body); s.status != 200 {
				t.Fatalf("%d %s", s.status, s.body)
			}
		}
		for i, w := range r.state.Load().pools[0].route.Workers.Stats(time.Now()) {
			slow[i] = w.Slow
		}
		if slow[1] > 2*slow[0] && slow[3] > 2*slow[2] {
			return
		}
	}
	t.Errorf("slowness of vLLM, of a slow one, of SGLang and of a slow one: %.2f; want 1 and about 4", slow)
}

// TestForeignMetrics: a page that no engine wrote is logged once, with what to do, and shown until the engine's page is
// there. The worker serves meanwhile.
func TestForeignMetrics(t *testing.T) {
	engine := sims(t, 1, vllmsim.Config{})[0]
	var mu sync.Mutex
	page := "[]"
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		text := page
		mu.Unlock()
		if q.URL.Path == "/metrics" && text != "" {
			fmt.Fprint(w, text)
			return
		}
		engine.Handler().ServeHTTP(w, q)
	}))
	defer front.Close()
	var log logtest.Log
	r := launch(t, settings("prefixaware", front.URL), slog.New(slog.NewJSONHandler(&log, nil)))
	r.waitUp(1)
	unread := func(want string) {
		t.Helper()
		line := "warmpath_worker_metrics_unread{"
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			_, rest, _ := strings.Cut(do(t, "GET", "http://"+r.AdminAddr()+"/metrics", "").body, line)
			rest, _, _ = strings.Cut(rest, "\n")
			if strings.HasSuffix(rest, " "+want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s%s; want %s", line, rest, want)
			}
		}
	}
	unread("1")
	if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`); s.status != 200 {
		t.Errorf("%d %s", s.status, s.body)
	}
	mu.Lock()
	page = ""
	mu.Unlock()
	unread("0")
	r.stop()
	if n := log.Count("metrics cannot be read"); n != 1 || !strings.Contains(log.String(), "/prometheus/metrics") {
		t.Errorf("%d lines; want one, with what to do for each engine:\n%s", n, log.String())
	}
}
