package daemon

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// trained is a worker that names the version of its weights. Its streams end when goOn says so.
type trained struct {
	url     string
	version atomic.Pointer[string] // nil = it names none
	goOn    chan bool
}

func newTrained(t *testing.T, version string) *trained {
	w := &trained{goOn: make(chan bool, 1)}
	if version != "" {
		w.version.Store(&version)
	}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/health", "/metrics", "/finish_weight_update", "/update_weights", "/reset_prefix_cache":
		case "/weight_info":
			if v := w.version.Load(); v != nil {
				fmt.Fprintf(out, `{"weight_version":%q}`, *v)
			} else {
				http.NotFound(out, r)
			}
		case "/v1/models":
			io.WriteString(out, `{"object":"list","data":[{"id":"sim","object":"model"}]}`)
		case "/v1/completions":
			out.Header().Set("X-Warmpath-Weights", "99")
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), "held up") {
				<-w.goOn
			}
			if !strings.Contains(string(body), `"stream":true`) {
				io.WriteString(out, `{"choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`)
				return
			}
			out.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(out, "data: {\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":null}]}\n\n")
			out.(http.Flusher).Flush()
			select {
			case <-w.goOn:
			case <-r.Context().Done():
			}
			io.WriteString(out, "data: {\"choices\":[{\"index\":0,\"text\":\"y\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		default:
			http.NotFound(out, r)
		}
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func trainedSettings(t *testing.T, pool string, urls ...string) string {
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, adminToken)
	return withPool(withServer(settings("prefixaware", urls...), fmt.Sprintf("admin_token_file = %q", token)), pool)
}

// awaitWeights waits until the workers have these versions.
func (r *running) awaitWeights(want ...string) {
	r.t.Helper()
	eventually(r.t, fmt.Sprint("weights ", want), func() bool {
		for i, w := range r.describe()[0].Workers {
			if w.Weights != want[i] || w.Labels["weights"] != want[i] {
				return false
			}
		}
		return true
	})
}

// TestWeightVersions: each answer names the version of the weights that made it, a stream that saw a change both, and
// what the old weights have computed does not count.
func TestWeightVersions(t *testing.T) {
	t.Parallel()
	a := newTrained(t, "step-11")
	r := start(t, trainedSettings(t, "", a.url), 1)
	r.awaitWeights("11")
	long := `{"model":"sim","prompt":"` + strings.Repeat("the same text ", 100) + `","max_tokens":1`
	matched := func(version string) string {
		t.Helper()
		s := r.do("POST", "/v1/completions", long+"}", "X-Warmpath-Explain", "1")
		if got := s.header.Values("X-Warmpath-Weights"); len(got) != 1 || got[0] != version {
			t.Errorf("the answer names the versions %v; want %s", got, version)
		}
		return s.header.Get("X-Warmpath-Matched-Blocks")
	}
	if matched("11"); matched("11") == "0" {
		t.Fatal("the index does not know the prompt")
	}

	resp, err := http.Post("http://"+r.Addr()+"/v1/completions", "application/json", strings.NewReader(long+`,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	if first, _ := body.ReadString('\n'); !strings.Contains(first, `"text":"x"`) || resp.Header.Get("X-Warmpath-Weights") != "11" {
		t.Errorf("a stream begins with %q, weights %s", first, resp.Header.Get("X-Warmpath-Weights"))
	}
	if s := r.admin("POST", "/api/v1/pools/main/each?path=/finish_weight_update", `{"weight_version":"step-12"}`); s.status != 200 {
		t.Fatalf("the update: %d %s", s.status, s.body)
	}
	r.awaitWeights("12")
	a.goOn <- true
	rest, _ := io.ReadAll(body)
	if !strings.HasSuffix(string(rest), "data: [DONE]\n\n: X-Warmpath-Weights: 11-12\n\n") {
		t.Errorf("the stream that saw the change ends with %q", rest)
	}
	eventually(t, "the decision has both versions", func() bool {
		return strings.Contains(r.admin("GET", "/api/v1/decisions/"+resp.Header.Get("X-Request-Id"), "").body, `"weights":"11-12"`)
	})
	kept := func(want string) {
		t.Helper()
		if got := r.describe()[0].Workers[0].KVWeights; got != want {
			t.Errorf("the KV cache is said to have blocks of %q; want %q", got, want)
		}
	}
	if matched("12") == "0" {
		t.Error("new weights that a call has brought have emptied the cache")
	}
	kept("11")
	if s := r.admin("POST", "/api/v1/pools/main/each?path=/reset_prefix_cache", ""); s.status != 200 {
		t.Fatalf("the reset: %d %s", s.status, s.body)
	}
	kept("")
	if got := matched("12"); got != "0" {
		t.Errorf("%s blocks count after a reset", got)
	}
	if matched("12") == "0" {
		t.Error("blocks of the new weights do not count")
	}

	a.goOn <- true
	if s := r.do("POST", "/v1/completions", long+`,"stream":true}`); s.header.Get("X-Warmpath-Weights") != "12" || strings.Contains(s.body, "Weights") {
		t.Errorf("a stream of one version: %v %s", s.header, s.body)
	}

	held := make(chan bool)
	go func() {
		defer close(held)
		s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"held up","stream":true}`)
		if s.header.Get("X-Warmpath-Weights") != "13" || strings.Contains(s.body, "Weights") {
			t.Errorf("a stream that began after the change: %v %s", s.header, s.body)
		}
	}()
	eventually(t, "it is at the worker", func() bool { return r.describe()[0].Workers[0].InFlight == 1 })
	if s := r.admin("POST", "/api/v1/pools/main/each?path=/finish_weight_update", `{"weight_version":"step-13"}`); s.status != 200 {
		t.Fatalf("the update: %d %s", s.status, s.body)
	}
	r.awaitWeights("13")
	a.goOn <- true
	a.goOn <- true
	<-held

	if s := r.admin("POST", "/api/v1/pools/main/each?path=/update_weights", "{}", "X-Warmpath-Weights", "7"); s.status != 200 {
		t.Fatalf("the way back: %d %s", s.status, s.body)
	}
	kept("12")
	if s := r.admin("POST", "/api/v1/pools/main/each?path=/update_weights", "{}", "X-Warmpath-Weights", "seven"); s.status != 400 {
		t.Errorf("a version that is no number: %d %s", s.status, s.body)
	}
	eventually(t, "a metric has the version", func() bool {
		return strings.Contains(r.admin("GET", "/metrics", "").body, `warmpath_worker_weights_version{pool="main",worker="w1"} 7`)
	})
	next := "step-8"
	a.version.Store(&next) // it says something new
	r.awaitWeights("8")
	if got := matched("8"); got != "0" {
		t.Errorf("%s blocks count of a worker that somebody else has updated", got)
	}
	kept("")
}

// TestLeastWeights: a request that asks for a version waits for it in the queue, or is refused.
func TestLeastWeights(t *testing.T) {
	t.Parallel()
	a, b := newTrained(t, "11"), newTrained(t, "12")
	for name, pool := range map[string]string{"no queue": "", "queue": "queue = { wait = \"500ms\", wait_empty = \"10s\" }"} {
		r := start(t, trainedSettings(t, pool, a.url, b.url), 2)
		r.awaitWeights("11", "12")
		for least, want := range map[string]string{"0": "", "12": "12"} {
			for range 4 {
				s := r.do("POST", "/v1/completions", hello, "X-Warmpath-Weights-Min", least)
				if got := s.header.Get("X-Warmpath-Weights"); s.status != 200 || want != "" && got != want {
					t.Errorf("%s: at least %s: %d, version %s", name, least, s.status, got)
				}
			}
		}
		began := time.Now()
		s := r.do("POST", "/v1/completions", hello, "X-Warmpath-Weights-Min", "13")
		waited := time.Since(began) > 400*time.Millisecond
		if s.status != 503 || !strings.Contains(s.body, "old_weights") || waited != (pool != "") {
			t.Errorf("%s: at least 13: %d %s after %v", name, s.status, s.body, time.Since(began))
		}
		if s := r.do("POST", "/v1/completions", hello, "X-Warmpath-Weights-Min", "new"); s.status != 400 || !strings.Contains(s.body, "invalid_weights_min") {
			t.Errorf("%s: no number: %d %s", name, s.status, s.body)
		}
	}
	r := start(t, trainedSettings(t, "queue = { wait = \"20s\", wait_empty = \"10s\" }", a.url, b.url), 2)
	r.awaitWeights("11", "12")
	done := make(chan seen, 1)
	go func() { done <- r.do("POST", "/v1/completions", hello, "X-Warmpath-Weights-Min", "13") }()
	eventually(t, "it waits", func() bool { return r.describe()[0].Queue != nil })
	if s := r.admin("GET", "/api/v1/decisions", ""); !strings.Contains(s.body, `"lacks_weights":true`) {
		t.Errorf("it waits, and the decisions say not for which weights: %s", s.body)
	}
	if s := r.admin("POST", "/api/v1/pools/main/each?path=/update_weights", "{}", "X-Warmpath-Weights", "13"); s.status != 200 {
		t.Fatalf("%d %s", s.status, s.body)
	}
	if s := <-done; s.status != 200 || s.header.Get("X-Warmpath-Weights") != "13" {
		t.Errorf("after the update: %d %s, version %s", s.status, s.body, s.header.Get("X-Warmpath-Weights"))
	}
}

// TestASessionKeepsItsWeights: while a worker has them, and is up; then it takes others.
func TestASessionKeepsItsWeights(t *testing.T) {
	t.Parallel()
	a, b := newTrained(t, ""), newTrained(t, "")
	toml := strings.Replace(trainedSettings(t, `weights = "one"`, a.url, b.url), "id = \"w1\"\n", "id = \"w1\"\nlabels = { weights = \"11\" }\n", 1)
	r := start(t, strings.Replace(toml, "id = \"w2\"\n", "id = \"w2\"\nlabels = { weights = \"12\" }\n", 1), 2)
	r.awaitWeights("11", "12")
	turn := func(session string, n int) string {
		t.Helper()
		s := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":"turn %d","max_tokens":1}`, n), "X-Session-Id", session)
		if s.status != 200 {
			t.Fatalf("%d %s", s.status, s.body)
		}
		return s.header.Get("X-Warmpath-Weights")
	}
	other := map[string]int{}
	for i := range 4 {
		session := fmt.Sprint("s", i)
		first := turn(session, 0)
		for n := range 6 {
			if got := turn(session, n+1); got != first {
				t.Errorf("session %d went from version %s to %s", i, first, got)
			}
		}
		other[first]++
	}
	if len(other) != 2 {
		t.Errorf("the sessions have the versions %v; want both", other)
	}
	first := turn("moves", 0)
	for _, w := range r.describe()[0].Workers {
		if w.Weights == first {
			r.shown()[0].Workers.Drain(w.ID, true, time.Now())
		}
	}
	if got := turn("moves", 1); got == first {
		t.Errorf("the session is answered by version %s, whose worker drains", got)
	}
}

// weighted gives the workers w1, w2, ... of a configuration labels with these versions.
func weighted(toml string, versions ...string) string {
	for i, v := range versions {
		id := fmt.Sprintf("id = \"w%d\"\n", i+1)
		toml = strings.Replace(toml, id, id+fmt.Sprintf("labels = { weights = %q }\n", v), 1)
	}
	return toml
}

// TestASessionKeepsTheWeightsThatAnswered: they are those of the worker that answered its last turn, not of one that
// failed the turn before.
func TestASessionKeepsTheWeightsThatAnswered(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	a := fakeWorker(t, func(w http.ResponseWriter, _ *http.Request) {
		if fails.Load() {
			w.WriteHeader(500)
			return
		}
		io.WriteString(w, completion)
	})
	b := fakeWorker(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, completion) })
	r := start(t, weighted(withPool(settings("roundrobin", a.URL, b.URL), `weights = "one"`), "11", "12"), 2)
	moved := 0
	for i := range 4 {
		for n := range 4 {
			fails.Store(n == 0)
			s := r.do("POST", "/v1/completions", short, "X-Session-Id", fmt.Sprint("s", i), "X-Warmpath-Explain", "json")
			if got := s.header.Get("X-Warmpath-Weights"); s.status != 200 || got != "12" {
				t.Errorf("session %d, turn %d: %d, version %s; want 12", i, n, s.status, got)
			}
			if strings.Contains(s.header.Get("X-Warmpath-Decision"), "worker_500") {
				moved++
			}
		}
	}
	if moved == 0 {
		t.Error("no turn has been tried at the worker that fails")
	}
}

// TestLeastWeightsOfAModel: workers of another model do not count, and a fallback with older weights has no room. What is
// stored is read where it is.
func TestLeastWeightsOfAModel(t *testing.T) {
	t.Parallel()
	big := sims(t, 1, vllmsim.Config{Models: []string{"big"}, Speed: 1, ReplyTokens: 4000})
	small := sims(t, 1, vllmsim.Config{Models: []string{"small"}})
	toml := withPool(settings("roundrobin", big[0].URL(), small[0].URL()), "max_in_flight = 1\nqueue = { wait = \"3s\" }") +
		"[[models]]\nname = \"chat\"\nto = [{ model = \"big\" }]\nfallback = \"small\"\n"
	r := start(t, weighted(toml, "13", "3"), 2)
	const body = `{"model":%q,"prompt":"hi","max_tokens":%d,"ignore_eos":true}`
	if s := r.do("POST", "/v1/completions", fmt.Sprintf(body, "small", 1), "X-Warmpath-Weights-Min", "13"); s.status != 503 ||
		!strings.Contains(s.body, "old_weights") {
		t.Errorf("only workers of another model have the version: %d %s", s.status, s.body)
	}
	held := make(chan seen, 1)
	go func() { held <- r.do("POST", "/v1/completions", fmt.Sprintf(body, "big", 100)) }()
	eventually(t, "its worker is full", func() bool { return r.metric("warmpath_worker_in_flight") == 1 })
	s := r.do("POST", "/v1/completions", fmt.Sprintf(body, "chat", 1), "X-Warmpath-Weights-Min", "13")
	if s.status != 200 || s.header.Get("X-Warmpath-Model") != "big" || s.header.Get("X-Warmpath-Weights") != "13" {
		t.Errorf("while the fallback has old weights: %d %s by %v", s.status, s.body, s.header)
	}
	<-held
	stored := r.do("POST", "/v1/responses", `{"model":"small","input":"hi","max_output_tokens":1}`)
	var is struct{ ID string }
	if err := json.Unmarshal([]byte(stored.body), &is); err != nil || is.ID == "" {
		t.Fatalf("%v %s", err, stored.body)
	}
	if s := r.do("GET", "/v1/responses/"+is.ID, "", "X-Warmpath-Weights-Min", "13"); s.status != 200 {
		t.Errorf("what is stored: %d %s", s.status, s.body)
	}
}
