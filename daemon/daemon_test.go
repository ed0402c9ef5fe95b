package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/plugins"
)

// running is a daemon under test on ports of its own.
type running struct {
	*Daemon
	t    testing.TB
	file string
	stop func() error // drains and returns Run's error; once
}

// build writes the configuration and makes a daemon of it, which does not run.
func build(t testing.TB, file, toml string, log *slog.Logger) *Daemon {
	t.Helper()
	write(t, file, toml)
	c, err := conf.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(c, log)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// launch writes the configuration and runs a daemon on it until the test's end.
func launch(t testing.TB, toml string, log *slog.Logger) *running {
	t.Helper()
	file := filepath.Join(t.TempDir(), "warmpath.toml")
	d := build(t, file, toml, log)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	r := &running{Daemon: d, t: t, file: file}
	r.stop = sync.OnceValue(func() error { cancel(); err := <-ended; d.Close(); return err })
	t.Cleanup(func() {
		testClient.CloseIdleConnections() // for them the drain would wait out its grace
		_ = r.stop()
	})
	return r
}

// modulesAreThere fails where make has not built the modules.
var modulesAreThere = sync.OnceValue(func() error { _, err := plugins.Builtin("prefixaware"); return err })

// start launches a daemon that logs nothing, and waits until n workers are up in all.
func start(t testing.TB, toml string, n int) *running {
	t.Helper()
	if err := modulesAreThere(); err != nil {
		t.Fatal(err)
	}
	r := launch(t, toml, slog.New(slog.DiscardHandler))
	if n > 0 { // else nothing is waited for: they may be up at once, or never
		r.waitUp(n)
	}
	return r
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// waitUp waits until n workers are up and have been heard on their models.
func (r *running) waitUp(n int) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%d workers up", n), func() bool {
		up := 0
		for _, p := range r.describe() {
			for _, w := range p.Workers {
				if w.State == "up" && w.Models != nil {
					up++
				}
			}
		}
		return up == n
	})
}

// describe is what /api/v1/pools says.
func (r *running) describe() []operator.PoolState { return operator.Describe(r.shown()) }

var eventually = waittest.Until

const freePorts = "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n"

// settings are a [server] table on free ports and one pool of that strategy.
func settings(strategy string, urls ...string) string {
	var b strings.Builder
	b.WriteString(freePorts)
	addPool(&b, "main", strategy, "*", urls...)
	return b.String()
}

func addPool(b *strings.Builder, name, strategy, models string, urls ...string) {
	fmt.Fprintf(b, "[[pools]]\nname = %q\nmodels = [%q]\nstrategy = %q\nhealth_interval = \"100ms\"\nscrape_interval = \"100ms\"\n", name, models, strategy)
	for i, u := range urls {
		fmt.Fprintf(b, "[[pools.workers]]\nurl = %q\nid = \"w%d\"\n", u, i+1)
	}
}

func sims(t *testing.T, n int, c vllmsim.Config) vllmsim.Fleet {
	t.Helper()
	if c.Speed == 0 {
		c.Speed = 20
	}
	f, err := vllmsim.StartFleet("127.0.0.1:0", n, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// answer is what a client saw.
type seen struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

var testClient = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

func (r *running) do(method, path, body string, header ...string) seen {
	r.t.Helper()
	return do(r.t, method, "http://"+r.Addr()+path, body, header...)
}

func do(t testing.TB, method, url, body string, header ...string) seen {
	t.Helper()
	return doAs(context.Background(), t, method, url, body, header...)
}

// doAs is do in a context.
func doAs(ctx context.Context, t testing.TB, method, url, body string, header ...string) seen {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := testClient.Do(req)
	if err != nil {
		return seen{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return seen{resp.StatusCode, resp.Header, string(b), err}
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func chatBody(stream bool, m []chatMessage) string {
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(map[string]any{"model": "sim", "messages": m, "max_tokens": 40, "stream": stream,
		"stream_options": map[bool]any{true: map[string]bool{"include_usage": true}}[stream]})
	return b.String()
}

// text gathers an answer's content and cached tokens, streamed or not.
func (s seen) text(t testing.TB) (content string, cached int) {
	t.Helper()
	type part struct{ Content string }
	var c struct {
		Choices []struct{ Message, Delta part }
		Usage   struct {
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	lines := []string{s.body}
	if strings.HasPrefix(s.body, "data:") {
		lines = strings.Split(s.body, "\n")
	}
	for _, l := range lines {
		l = strings.TrimPrefix(l, "data: ")
		if l == "" || l == "[DONE]" {
			continue
		}
		c.Choices = nil
		if err := json.Unmarshal([]byte(l), &c); err != nil {
			t.Fatalf("answer %q: %v", l, err)
		}
		for _, ch := range c.Choices {
			content += ch.Message.Content + ch.Delta.Content
		}
		cached = max(cached, c.Usage.Details.Cached)
	}
	return content, cached
}

func TestChatStaysWhereItsPrefixIs(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint("stream=", stream), func(t *testing.T) {
			r := start(t, settings("prefixaware", sims(t, 4, vllmsim.Config{}).URLs()...), 4)
			m := []chatMessage{{"system", strings.Repeat("You know the tides. ", 60)}, {"user", "When is high water?"}}
			home, before := "", 0
			for turn := range 4 {
				s := r.do("POST", "/v1/chat/completions", chatBody(stream, m), "X-Warmpath-Explain", "1")
				if s.status != 200 || s.err != nil {
					t.Fatalf("turn %d: %d %v %s", turn, s.status, s.err, s.body)
				}
				content, cached := s.text(t)
				w := s.header.Get("X-Warmpath-Worker")
				if turn > 0 && (w != home || cached <= before) {
					t.Fatalf("turn %d: worker %s, %d cached; want %s and more than %d", turn, w, cached, home, before)
				}
				home, before = w, cached
				m = append(m, chatMessage{"assistant", content}, chatMessage{"user", "And after that?"})
			}
		})
	}
}

func TestAnswerEntersTheIndex(t *testing.T) {
	r := start(t, settings("prefixaware", sims(t, 2, vllmsim.Config{}).URLs()...), 2)
	m := []chatMessage{{"user", strings.Repeat("What lies behind the lighthouse? ", 8)}}
	content, _ := r.do("POST", "/v1/chat/completions", chatBody(true, m)).text(t)
	prompt := 0
	for _, x := range m {
		prompt += len(x.Content)
	}
	m = append(m, chatMessage{"assistant", content}, chatMessage{"user", "x"})
	s := r.do("POST", "/v1/chat/completions", chatBody(true, m), "X-Warmpath-Explain", "1")
	var matched int
	fmt.Sscan(s.header.Get("X-Warmpath-Matched-Blocks"), &matched)
	if got, want := matched*128, prompt+len(content)-128; got < want {
		t.Fatalf("%d bytes matched; want at least %d, the answer's among them", got, want)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, strings.Replace(settings("prefixaware", f.URLs()...), "[server]", "[server]\nmax_body_bytes = 2048", 1), 2)
	f1 := func(name string, s seen, status int, code, retry string) {
		t.Helper()
		var e struct {
			Error struct {
				Message, Type string
				Code          any
			}
		}
		if err := json.Unmarshal([]byte(s.body), &e); err != nil {
			t.Fatalf("%s: body %q: %v", name, s.body, err)
		}
		if s.status != status || (code != "" && e.Error.Code != any(code)) || s.header.Get("Retry-After") != retry {
			t.Errorf("%s: %d code %v retry %q; want %d %q %q (%s)", name, s.status, e.Error.Code, s.header.Get("Retry-After"), status, code, retry, s.body)
		}
	}
	f1("unknown model", r.do("POST", "/v1/completions", `{"model":"nobody's","prompt":"x"}`), 404, "model_not_found", "")
	f1("too large", r.do("POST", "/v1/completions", `{"model":"sim","prompt":"`+strings.Repeat("x", 4000)+`"}`), 413, "body_too_large", "")
	f1("no such url", r.do("GET", "/other", ""), 404, "unknown_url", "")
	f1("malformed goes to a worker", r.do("POST", "/v1/completions", `{"model":"sim","prompt":`), 400, "", "")
	if s := r.do("POST", "/v1/completions", `{"prompt":"no model named","max_tokens":4}`); s.status != 200 {
		t.Errorf("no model: %d %s; want 200", s.status, s.body)
	}
	for _, s := range f {
		if err := s.SetFault(vllmsim.Fault{Mode: vllmsim.FaultDie}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all workers down", func() bool { return r.describe()[0].Up == 0 })
	f1("no worker", r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x"}`), 503, "no_worker", "4") // 3 s, and what the first client gets of the spread
	if s := r.do("GET", "/ready", ""); s.status != 503 {
		t.Errorf("/ready: %d; want 503", s.status)
	}
}

func TestExplainNamesNoURLAndCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	for _, on := range []bool{true, false} {
		r := start(t, strings.Replace(settings("prefixaware", f.URLs()...), "[server]", fmt.Sprint("[server]\nexplain = ", on), 1), 2)
		s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":2}`, "X-Warmpath-Explain", "1")
		if got := s.header.Get("X-Warmpath-Worker") != ""; got != on {
			t.Errorf("explain=%v: decision told: %v", on, got)
		}
		for name, v := range s.header {
			if strings.HasPrefix(name, "X-Warmpath") && strings.Contains(v[0], "127.0.0.1") {
				t.Errorf("%s shows an address: %s", name, v[0])
			}
		}
	}
}

func TestModelsAreMergedAndKeptApart(t *testing.T) {
	t.Parallel()
	a, b := sims(t, 1, vllmsim.Config{Models: []string{"a", "both"}}), sims(t, 1, vllmsim.Config{Models: []string{"b", "both"}})
	r := start(t, settings("roundrobin", a[0].URL(), b[0].URL()), 2)
	s := r.do("GET", "/v1/models", "")
	for _, id := range []string{"a", "b", "both"} {
		if n := strings.Count(s.body, `"id":"`+id+`"`) + strings.Count(s.body, `"id": "`+id+`"`); n != 1 {
			t.Errorf("%q is listed %d times; want once: %s", id, n, s.body)
		}
	}
	for range 6 {
		if s := r.do("POST", "/v1/completions", `{"model":"b","prompt":"x","max_tokens":1}`); s.status != 200 {
			t.Fatalf("model b: %d %s", s.status, s.body)
		}
	}
	if n := a[0].Stats().Finished; n != 0 {
		t.Errorf("the worker without the model got %d requests", n)
	}
}

func TestSessionStaysUntilItsWorkerIsDown(t *testing.T) {
	f := sims(t, 4, vllmsim.Config{})
	r := start(t, settings("session", f.URLs()...), 4)
	ask := func(body string, header ...string) string {
		t.Helper()
		s := r.do("POST", "/v1/completions", body, append(header, "X-Warmpath-Explain", "1")...)
		if s.status != 200 {
			t.Fatalf("%d %s", s.status, s.body)
		}
		return s.header.Get("X-Warmpath-Worker")
	}
	plain := `{"model":"sim","prompt":"x","max_tokens":1}`
	home := ask(plain, "X-Session-Id", "s1")
	for i := range 20 {
		if w := ask(fmt.Sprintf(`{"model":"sim","prompt":"%d","max_tokens":1}`, i), "X-Session-Id", "s1"); w != home {
			t.Fatalf("request %d of the session went to %s; want %s", i, w, home)
		}
	}
	byKey := ask(`{"model":"sim","prompt":"x","max_tokens":1,"prompt_cache_key":"k"}`)
	if w := ask(`{"model":"sim","prompt":"y","max_tokens":1,"prompt_cache_key":"k","user":"u"}`); w != byKey {
		t.Fatalf("prompt_cache_key went to %s, then %s", byKey, w)
	}
	var i int
	fmt.Sscanf(home, "w%d", &i)
	if err := f[i-1].SetFault(vllmsim.Fault{Mode: vllmsim.FaultDie}); err != nil {
		t.Fatal(err)
	}
	second := ask(plain, "X-Session-Id", "s1")
	if second == home {
		t.Fatal("the session is still at the dead worker")
	}
	for range 10 {
		if w := ask(plain, "X-Session-Id", "s1"); w != second {
			t.Fatalf("after the move it went to %s; want %s", w, second)
		}
	}
}

func TestRoundRobinIsEven(t *testing.T) {
	f := sims(t, 3, vllmsim.Config{})
	r := start(t, settings("roundrobin", f.URLs()...), 3)
	for range 31 {
		if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`); s.status != 200 {
			t.Fatal(s.status, s.body)
		}
	}
	for i, s := range f {
		if n := s.Stats().Finished; n < 10 || n > 11 {
			t.Errorf("worker %d got %d of 31; want 10 or 11", i+1, n)
		}
	}
}
