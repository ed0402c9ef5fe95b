package daemon

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/otlptest"
)

const (
	clientTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan   = "00f067aa0ba902b7"
	clientParent = "00-" + clientTrace + "-" + clientSpan + "-01"
)

// tracedWorkers are two: the first answers 503 once, both note the trace context that they get.
func tracedWorkers(t *testing.T) (urls []string, got *atomic.Pointer[http.Header]) {
	got = new(atomic.Pointer[http.Header])
	var failed atomic.Bool
	serve := func(rw http.ResponseWriter, r *http.Request) {
		if failed.CompareAndSwap(false, true) {
			rw.WriteHeader(503)
			return
		}
		header := r.Header.Clone()
		got.Store(&header)
		io.Copy(io.Discard, r.Body)
		io.WriteString(rw, `{"id":"cmpl-17","choices":[{"index":0,"text":"a secret answer","finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":2}}}`)
	}
	return []string{fakeWorker(t, serve).URL, fakeWorker(t, serve).URL}, got
}

// TestARequestIsASpan: client, router and worker in one trace, with the decision and its retry; in the log and by id.
func TestARequestIsASpan(t *testing.T) {
	t.Setenv("WARMPATH_TEST_KEY", "sesame-sesame")
	c, stop := otlptest.Start()
	t.Cleanup(stop)
	urls, got := tracedWorkers(t)
	log := filepath.Join(t.TempDir(), "access.log")
	toml := withServer(settings("roundrobin", urls...), fmt.Sprintf("access_log = %q\nexplain_log = \"all\"", log)) +
		"[[keys]]\nname = \"team\"\nenv = \"WARMPATH_TEST_KEY\"\n" + fmt.Sprintf("[tracing]\nendpoint = %q\n", c.URL)
	r := start(t, toml, 2)
	ask := func(id, key, parent string) seen {
		return r.do("POST", "/v1/completions?q=hidden-query", `{"model":"sim","prompt":"a secret prompt","max_tokens":3}`,
			"X-Request-Id", id, "Authorization", "Bearer "+key, "traceparent", parent, "tracestate", "vendor=1")
	}
	if s := ask("sampled", "sesame-sesame", clientParent); s.status != 200 {
		t.Fatal(s)
	}
	worker := *got.Load()
	if s := ask("unsampled", "sesame-sesame", strings.TrimSuffix(clientParent, "01")+"00"); s.status != 200 {
		t.Fatal(s)
	}
	unsampled := *got.Load()
	if s := ask("stranger", "not-the-key-at-all", clientParent); s.status != 401 {
		t.Fatal(s)
	}
	var d decisions.Decision
	if code, text := r.decided("/api/v1/decisions/sampled", &d); code != 200 || d.Trace != clientTrace || len(d.Attempts) != 1 || d.Attempts[0].After <= 0 {
		t.Errorf("by id: %d %s", code, text)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	raw, _, _, _, errs := c.Seen()
	if len(c.Spans()) != 1 || len(errs) > 0 {
		t.Fatalf("%d spans, %v; want one", len(c.Spans()), errs)
	}
	s := c.Spans()[0]
	if s.TraceID != clientTrace || s.ParentID != clientSpan || s.State != "vendor=1" || !s.Server || s.Failed || s.Name != "text_completion sim" || !s.End.After(s.Start) {
		t.Errorf("the span is %+v", s)
	}
	if want := "00-" + clientTrace + "-" + s.SpanID + "-01"; worker.Get("Traceparent") != want || worker.Get("Tracestate") != "vendor=1" || len(worker["Traceparent"]) != 1 {
		t.Errorf("the worker got %q, %q; want %q", worker["Traceparent"], worker["Tracestate"], want)
	}
	if p := unsampled.Get("Traceparent"); !strings.HasPrefix(p, "00-"+clientTrace) || !strings.HasSuffix(p, "-00") {
		t.Errorf("of the trace that is not sampled the worker got %q", p)
	}
	for key, want := range map[string]any{"service.name": "warmpath", "http.request.method": "POST", "url.path": "/v1/completions",
		"http.response.status_code": 200, "warmpath.request_id": "sampled", "warmpath.key": "team", "gen_ai.request.model": "sim",
		"warmpath.pool": "main", "warmpath.strategy": "roundrobin", "warmpath.retries": 1, "gen_ai.usage.input_tokens": 5,
		"gen_ai.usage.output_tokens": 3, "gen_ai.usage.cache_read.input_tokens": 2, "warmpath.worker": d.Worker, "warmpath.reason": d.Reason,
		"gen_ai.operation.name": "text_completion", "gen_ai.provider.name": "vllm", "gen_ai.response.model": "sim",
		"gen_ai.response.id": "cmpl-17"} {
		if got := s.Attributes[key]; got != want || got == "" {
			t.Errorf("%s is %v; want %v", key, got, want)
		}
	}
	if text, _ := s.Attributes["warmpath.candidates"].(string); !strings.Contains(text, `"worker":"w2"`) {
		t.Errorf("candidates: %q", text)
	}
	if got := s.Attributes["gen_ai.response.finish_reasons"]; got != "stop" {
		t.Errorf("finish reasons: %v", got)
	}
	if len(s.Events) != 1 || s.Events[0].Name != "retry" || s.Events[0].Attributes["warmpath.retry.reason"] != "worker_busy" ||
		s.Events[0].Attributes["warmpath.worker"] == d.Worker || s.Events[0].At.Before(s.Start) || s.Events[0].At.After(s.End) {
		t.Errorf("events: %+v; want one retry within the span", s.Events)
	}
	for _, secret := range []string{"secret", "sesame", "hidden-query"} {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("%q stands in a span: %+v", secret, s)
		}
	}
	traces := loggedTraces(t, log)
	if traces["sampled"] != clientTrace || traces["unsampled"] != clientTrace || traces["stranger"] != nil || len(traces) != 3 {
		t.Errorf("trace ids in the access log: %v; want the client's for all but who has no key", traces)
	}
}

// loggedTraces reads the trace ids of three lines of an access log, by the requests' ids.
func loggedTraces(t *testing.T, file string) map[string]any {
	t.Helper()
	eventually(t, "a line a request", func() bool { return len(logged(t, file)) == 3 })
	traces := map[string]any{}
	for _, m := range logged(t, file) {
		traces[fmt.Sprint(m["id"])] = m["trace_id"]
	}
	return traces
}

// TestReloadTurnsTracingOn: without it the client's context goes to the worker untouched.
func TestReloadTurnsTracingOn(t *testing.T) {
	t.Parallel()
	c, stop := otlptest.Start()
	t.Cleanup(stop)
	urls, got := tracedWorkers(t)
	off := settings("roundrobin", urls...)
	r := start(t, off, 2)
	ask := func() string {
		t.Helper()
		if s := r.do("POST", "/v1/completions", short, "traceparent", clientParent); s.status != 200 {
			t.Fatal(s)
		}
		return (*got.Load()).Get("Traceparent")
	}
	if p := ask(); p != clientParent {
		t.Errorf("off: the worker got %q; want the client's", p)
	}
	reload := func(toml string) {
		t.Helper()
		write(t, r.file, toml)
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	reload(off + fmt.Sprintf("[tracing]\nendpoint = %q\n", c.URL))
	if p := ask(); p == clientParent || !strings.HasPrefix(p, "00-"+clientTrace) {
		t.Errorf("on: the worker got %q; want the client's trace, and a span of the router's", p)
	}
	reload(off)
	if p := ask(); p != clientParent {
		t.Errorf("off again: the worker got %q; want the client's", p)
	}
	eventually(t, "the span of the one that was traced", func() bool { return len(c.Spans()) == 1 })
}

// TestMetricsOverOTLP: with metrics = true the collector gets OpenTelemetry's histograms of a server for generative AI, of all
// requests, sampled or not: an answer in one piece, a stream, one that a worker refuses, and a model that nobody serves.
func TestMetricsOverOTLP(t *testing.T) {
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
	c, stop := otlptest.Start()
	t.Cleanup(stop)
	w := fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case bytes.Contains(body, []byte("refuse me")):
			rw.WriteHeader(400)
			io.WriteString(rw, `{"error":{"message":"no","code":400}}`)
		case bytes.Contains(body, []byte(`"stream":true`)):
			rw.Header().Set("Content-Type", "text/event-stream")
			for _, text := range []string{"a", "b", "c"} {
				fmt.Fprintf(rw, "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", text)
				rw.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
			io.WriteString(rw, "data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n")
		default:
			io.WriteString(rw, `{"id":"c2","choices":[{"index":0,"text":"x","finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}`)
		}
	})
	toml := settings("roundrobin", w.URL)
	off := toml + fmt.Sprintf("[tracing]\nendpoint = %q\nsample = 0.0\n", c.URL)
	r := start(t, off+"metrics = true\n", 1)
	ask := func(want int, path, body string) {
		t.Helper()
		if s := r.do("POST", path, body); s.status != want {
			t.Fatal(s)
		}
	}
	chat := func(more string) string {
		return `{"model":"sim",` + more + `"messages":[{"role":"user","content":"hi"}]}`
	}
	ask(200, "/v1/completions", `{"model":"sim","prompt":"a secret prompt"}`)
	ask(200, "/v1/completions", `{"model":"sim","prompt":"a secret prompt"}`)
	ask(200, "/v1/chat/completions", chat(`"stream":true,"stream_options":{"include_usage":true},`))
	ask(400, "/v1/chat/completions", chat(`"user":"refuse me",`))
	ask(404, "/v1/chat/completions", `{"model":"of-nobody","messages":[]}`)
	series := func() map[string]otlptest.Histogram {
		all := map[string]otlptest.Histogram{}
		for _, h := range c.Histograms() {
			all[fmt.Sprint(strings.TrimPrefix(h.Name, "gen_ai.server."), " ", h.Attributes["gen_ai.operation.name"], " ",
				h.Attributes["gen_ai.request.model"], " ", h.Attributes["error.type"])] = h
		}
		return all
	}
	want := map[string]int{"request.duration text_completion sim <nil>": 2, "request.duration chat sim <nil>": 1,
		"request.duration chat sim 400": 1, "time_to_first_token chat sim <nil>": 1,
		"time_per_output_token chat sim <nil>": 1}
	eventually(t, "all series", func() bool {
		all := series()
		for name, n := range want {
			if all[name].Count != n {
				return false
			}
		}
		return len(all) == len(want)
	})
	all := series()
	if h := all["time_per_output_token chat sim <nil>"]; h.Sum < .015 || h.Sum > 5 || h.Unit != "s" || len(h.Bounds) != 13 || h.Bounds[0] != .01 ||
		h.Attributes["gen_ai.provider.name"] != "vllm" || h.Attributes["gen_ai.response.model"] != "sim" {
		t.Errorf("%+v", h)
	}
	if first, took := all["time_to_first_token chat sim <nil>"].Sum, all["request.duration chat sim <nil>"].Sum; first <= 0 || took < first+.03 {
		t.Errorf("the first token came after %v, the last byte after %v", first, took)
	}
	raw, _, _, _, errs := c.Seen()
	if len(errs) > 0 || len(c.Spans()) != 0 || bytes.Contains(raw, []byte("secret")) || bytes.Contains(raw, []byte("of-nobody")) {
		t.Errorf("%v, %d spans, %q", errs, len(c.Spans()), raw)
	}
	write(t, r.file, off)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	calls := func() int { _, _, _, n, _ := c.Seen(); return n }
	eventually(t, "the last call", func() bool {
		before := calls()
		time.Sleep(300 * time.Millisecond)
		return calls() == before
	})
}

// TestACollectorThatRefusesMetrics is said once, and once that it takes them again.
func TestACollectorThatRefusesMetrics(t *testing.T) {
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
	c, stop := otlptest.Start()
	t.Cleanup(stop)
	c.Answer(403)
	urls, _ := tracedWorkers(t)
	log := new(logtest.Log)
	r := launch(t, settings("roundrobin", urls...)+fmt.Sprintf("[tracing]\nendpoint = %q\nsample = 0.0\nmetrics = true\n", c.URL),
		slog.New(slog.NewTextHandler(log, nil)))
	r.waitUp(2)
	if s := r.do("POST", "/v1/completions", short); s.status != 200 {
		t.Fatal(s)
	}
	calls := func() int { _, _, _, n, _ := c.Seen(); return n }
	eventually(t, "five calls", func() bool { return calls() >= 5 })
	c.Answer(0)
	eventually(t, "the metrics", func() bool { return len(c.Histograms()) > 0 })
	eventually(t, "a line about it", func() bool { return strings.Contains(log.String(), "the collector takes metrics again") })
	if n := strings.Count(log.String(), "metrics do not reach the collector"); n != 1 {
		t.Errorf("%d lines say that metrics do not reach the collector:\n%s", n, log.String())
	}
}
