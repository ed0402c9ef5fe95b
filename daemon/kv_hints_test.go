package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
)

// hinting is a pool of two workers with kv_hints, of which the second, between it and the router, is seen by a spy.
type hinting struct {
	*running
	sim vllmsim.Fleet

	stored uint64 // blocks of the first worker that the router knew of, at the last warm

	mu    sync.Mutex
	hints []string // kv_hints of the bodies that came to the second worker, "" for none
}

// newHinting starts it. keys are further keys of the pool; refuse has the second worker refuse the field.
func newHinting(t *testing.T, c vllmsim.Config, keys, more string, refuse bool) *hinting {
	t.Helper()
	c.KVEvents, c.Speed = published(events.Map).KVEvents, 1
	h := &hinting{sim: sims(t, 2, c)}
	second, _ := url.Parse(h.sim.URLs()[1])
	proxy := httputil.NewSingleHostReverseProxy(second)
	proxy.FlushInterval = -1
	spy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var said struct {
			Hints json.RawMessage `json:"kv_hints"`
		}
		if r.URL.Path == "/v1/completions" || r.URL.Path == "/v1/chat/completions" {
			_ = json.Unmarshal(body, &said)
			h.mu.Lock()
			h.hints = append(h.hints, string(said.Hints))
			h.mu.Unlock()
		}
		if refuse && said.Hints != nil {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"message":"[{'type': 'extra_forbidden', 'loc': ('body', 'kv_hints')}]","type":"BadRequestError"}}`)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(spy.Close)
	toml := fmt.Sprintf(`[server]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
[[pools]]
models = ["sim"]
strategy = "kvaware"
kv_events = "auto"
%s
[pools.tokens]
budget = "2s"
[[pools.workers]]
url = %q
id = "w0"
kv_source = "tcp://%s"
[[pools.workers]]
url = %q
id = "w1"
kv_source = "tcp://%s"
%s`, keys, h.sim.URLs()[0], strings.TrimPrefix(h.sim.URLs()[0], "http://"), spy.URL, second.Host, more)
	h.running = start(t, toml, 2)
	h.awaitLive(2)
	return h
}

// last returns the hints of the body that came to the second worker last.
func (h *hinting) last() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.hints) == 0 {
		return "no body"
	}
	return h.hints[len(h.hints)-1]
}

// ask sends a prompt as a stream and returns how many of its tokens the engine counts, and how many of these as cached.
func (h *hinting) ask(prompt, fields string, header ...string) (tokens, cached int) {
	h.t.Helper()
	text, _ := json.Marshal(prompt)
	s := h.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":%s,"max_tokens":2,"stream":true,
		"stream_options":{"include_usage":true}%s}`, text, fields), header...)
	if s.status != 200 {
		h.t.Fatalf("%d %s", s.status, s.body)
	}
	for line := range strings.Lines(s.body) {
		var event struct {
			Usage struct {
				Prompt  int `json:"prompt_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		data, is := strings.CutPrefix(line, "data: ")
		if is && json.Unmarshal([]byte(data), &event) == nil && event.Usage.Prompt > 0 {
			tokens, cached = event.Usage.Prompt, event.Usage.Details.Cached
		}
	}
	return tokens, cached
}

// warm has the first worker compute a prompt, and waits until the router knows of it. Then only the second one takes
// requests.
func (h *hinting) warm(name, fields string, header ...string) (prompt string) {
	h.t.Helper()
	workers := h.state.Load().pools[0].route.Workers
	prompt = name + strings.Repeat(" High water follows the moon.", 400)
	workers.Drain("w0", false, time.Now())
	workers.Drain("w1", true, time.Now())
	h.ask(prompt, fields, header...)
	eventually(h.t, "the router knows of the blocks", func() bool { return h.events()["w0"].Held.Stored > h.stored+50 })
	h.stored = h.events()["w0"].Held.Stored
	workers.Drain("w0", true, time.Now())
	workers.Drain("w1", false, time.Now())
	return prompt
}

// result returns how many hints had a result.
func (h *hinting) result(r string) float64 {
	return h.metric("warmpath_kv_hints_total", fmt.Sprintf("result=%q", r))
}

// TestHints: a worker that lacks a prompt which another one holds is told so, and computes less of it. It is not told of
// what has another salt.
func TestHints(t *testing.T) {
	t.Parallel()
	h := newHinting(t, vllmsim.Config{KVHints: true}, `kv_hints = "fetch"`, "", false)
	prompt := h.warm("tide", "")
	tokens, cached := h.ask(prompt, "")
	if cached < tokens*9/10 || h.result("fetched") != 1 {
		t.Errorf("%d of %d tokens are cached, %v hints were taken; want nearly all by one", cached, tokens, h.result("fetched"))
	}
	var said struct {
		Protocol string `json:"protocol_version"`
		Actions  []struct {
			Type    string `json:"action_type"`
			Payload struct {
				Source string   `json:"source_control_endpoint"`
				Hashes []uint64 `json:"block_hashes"`
			}
		}
	}
	source := "tcp://" + strings.TrimPrefix(h.sim.URLs()[0], "http://")
	if err := json.Unmarshal([]byte(h.last()), &said); err != nil || said.Protocol != "0.1" || len(said.Actions) != 1 ||
		said.Actions[0].Type != "kv.fetch" || said.Actions[0].Payload.Source != source ||
		len(said.Actions[0].Payload.Hashes) != cached/16 {
		t.Errorf("%v: the worker was told %s", err, h.last())
	}
	if page := h.admin("GET", "/api/v1/decisions?limit=1", ""); !strings.Contains(page.body, "tokens more from w0") {
		t.Errorf("the decision does not name the hint: %s", page.body)
	}
	if _, cached := h.ask(prompt, ""); cached == 0 || h.last() != "" {
		t.Errorf("a worker that has the prompt is told %q, and finds %d tokens", h.last(), cached)
	}
	prompt = h.warm("ebb", `,"cache_salt":"one"`)
	if _, cached := h.ask(prompt, `,"cache_salt":"two"`); cached > 0 || h.last() != "" {
		t.Errorf("another salt: told %q, and finds %d tokens", h.last(), cached)
	}
	if _, cached := h.ask(prompt, `,"cache_salt":"one"`); cached == 0 || h.last() == "" {
		t.Errorf("the same salt: told %q, and finds %d tokens", h.last(), cached)
	}
}

// TestHintsFence: a key whose requests stay at some workers is told of no other worker's KV.
func TestHintsFence(t *testing.T) {
	t.Parallel()
	h := newHinting(t, vllmsim.Config{KVHints: true}, `kv_hints = "fetch"`, "labels = { tier = \"gold\" }\n"+
		limited(t, "all", "", "gold", `workers = "tier=gold"`), false)
	prompt := h.warm("tide", "", "Authorization", "Bearer all-secret")
	if _, cached := h.ask(prompt, "", "Authorization", "Bearer gold-secret"); cached > 0 || h.last() != "" {
		t.Errorf("inside of a fence: told %q, and finds %d tokens", h.last(), cached)
	}
	prompt = h.warm("ebb", "", "Authorization", "Bearer all-secret")
	if _, cached := h.ask(prompt, "", "Authorization", "Bearer all-secret"); cached == 0 || h.last() == "" {
		t.Errorf("without a fence: told %q, and finds %d tokens", h.last(), cached)
	}
}

// TestHintsOfPaused: no worker is told to fetch from an engine that is paused or sleeps, whose KV may be gone or does not
// move. One that drains lends what it holds.
func TestHintsOfPaused(t *testing.T) {
	t.Parallel()
	h := newHinting(t, vllmsim.Config{KVHints: true, DevMode: true}, `kv_hints = "fetch"`, "", false)
	holder, workers := h.sim.URLs()[0], h.state.Load().pools[0].route.Workers
	prompt := h.warm("tide", "")
	do(t, "POST", holder+"/pause?mode=keep&clear_cache=false", "")
	workers.Paused("w0", time.Now())
	if _, cached := h.ask(prompt, ""); cached > 0 || h.last() != "" {
		t.Errorf("while the holder is paused: told %q, and finds %d tokens", h.last(), cached)
	}
	do(t, "POST", holder+"/resume", "")
	workers.Woke("w0", time.Now())
	prompt = h.warm("ebb", "")
	if _, cached := h.ask(prompt, ""); cached == 0 || h.last() == "" {
		t.Errorf("of a holder that drains: told %q, and finds %d tokens", h.last(), cached)
	}
}

// TestHintsIgnored: once workers that ignore hints have shown that these save nothing, they get no more of them.
func TestHintsIgnored(t *testing.T) {
	t.Parallel()
	h := newHinting(t, vllmsim.Config{}, `kv_hints = "fetch"`, "", false)
	for i := 0; h.result("dearer") == 0; i++ {
		prompt := h.warm(fmt.Sprint("tide ", i), "")
		if _, cached := h.ask(prompt, ""); cached > 0 {
			t.Fatalf("%d tokens are cached", cached)
		}
		if i == 10 {
			t.Fatalf("after %d prompts the worker still gets hints", i)
		}
	}
	if h.result("missed") < 2 || h.last() != "" {
		t.Errorf("%v hints were missed, the last request had %q", h.result("missed"), h.last())
	}
}

// TestHintsRefused: a worker that refuses the field gets the request again without it, and no hint after that.
func TestHintsRefused(t *testing.T) {
	t.Parallel()
	h := newHinting(t, vllmsim.Config{}, `kv_hints = "fetch"`, "", true)
	h.ask(h.warm("tide", ""), "")
	if n := len(h.hints); n < 2 || h.hints[n-2] == "" || h.hints[n-1] != "" {
		t.Errorf("the worker was told %q; want a hint, and then none", h.hints)
	}
	n := len(h.hints)
	h.ask(h.warm("ebb", ""), "")
	if len(h.hints) != n+1 || h.last() != "" {
		t.Errorf("then it was told %q", h.hints[n:])
	}
}

// TestHintsOfClients: a client names no address to a worker, unless the operator lets it.
func TestHintsOfClients(t *testing.T) {
	t.Parallel()
	const own = `{"model":"sim","prompt":"x","max_tokens":1,"\u006bv_hints":{"protocol_version":"0.1","message_id":"m","actions":[]}}`
	for hints, want := range map[string]int{"": 403, "fetch": 403, "pass": 200} {
		h := newHinting(t, vllmsim.Config{KVHints: true}, fmt.Sprintf("kv_hints = %q", hints), "", false)
		h.state.Load().pools[0].route.Workers.Drain("w0", true, time.Now())
		s := h.do("POST", "/v1/completions", own)
		if s.status != want || want == 403 && !strings.Contains(s.body, "kv_hints_not_allowed") {
			t.Errorf("%q: %d %s; want %d", hints, s.status, s.body, want)
		}
		if want == 200 && !strings.Contains(h.last(), "message_id") {
			t.Errorf("%q: the worker got %q", hints, h.last())
		}
		long := `{"prompt":"` + strings.Repeat("x ", 5<<20) + strings.TrimPrefix(own, `{"model":"sim","prompt":"x`)
		long = strings.Replace(long, `{`, `{"model":"sim",`, 1)
		if h.do("POST", "/v1/completions", long); hints == "fetch" && strings.Contains(h.last(), "message_id") {
			t.Errorf("%q: of a long body the worker got %q", hints, h.last())
		}
	}
}
