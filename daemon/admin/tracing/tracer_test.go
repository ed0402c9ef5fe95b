package tracing

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/otlptest"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// tracing starts a tracer on an endpoint.
func tracing(t *testing.T, endpoint string, sample float64) (*Tracer, *logtest.Log) {
	t.Helper()
	tr, log := new(Tracer), new(logtest.Log)
	tr.Configure(Config{Endpoint: endpoint, Sample: sample}, "test", slog.New(slog.NewJSONHandler(log, nil)))
	t.Cleanup(tr.Close)
	return tr, log
}

func newCollector(t testing.TB) *otlptest.Collector {
	t.Helper()
	c, stop := otlptest.Start()
	t.Cleanup(stop)
	return c
}

// request is one with these fields, names and values by turns.
func request(fields ...string) *message.Inbound {
	in := &message.Inbound{Method: "POST", Path: "/v1/chat/completions", ID: "id"}
	var all []upstream.Field
	for i := 0; i < len(fields); i += 2 {
		all = append(all, upstream.Field{Name: fields[i], Value: fields[i+1]})
	}
	in.SetHeader(all)
	return in
}

// serve begins and ends a request.
func (tr *Tracer) serve(fields ...string) *message.Inbound {
	in := request(fields...)
	tr.Begin(in, time.Now())
	in.Seen.Status = 200
	if in.Trace.Span != nil {
		in.Trace.Span.End(in, time.Millisecond, 3)
	}
	return in
}

func TestOffCostsNothing(t *testing.T) {
	tr := new(Tracer)
	in := request("traceparent", parent)
	if n := testing.AllocsPerRun(100, func() { tr.Begin(in, time.Time{}) }); n != 0 || in.Trace != (message.Trace{}) {
		t.Errorf("%v allocations, and the request has %+v; want none", n, in.Trace)
	}
}

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00-" + traceID + "-00f067aa0ba902b7-01"
)

// TestTraceContext: W3C's rules, in and out.
func TestTraceContext(t *testing.T) {
	c := newCollector(t)
	all, _ := tracing(t, c.URL, 1)
	none, _ := tracing(t, c.URL, 0)
	f := func(what string, tr *Tracer, sampled, inherited bool, fields ...string) *message.Inbound {
		t.Helper()
		in := tr.serve(fields...)
		p := strings.Split(in.Trace.Parent, "-")
		flags := map[bool]string{true: "01", false: "00"}[sampled]
		if len(p) != 4 || p[0] != "00" || len(p[1]) != 32 || len(p[2]) != 16 || p[3] != flags || p[1] != in.Seen.Trace ||
			p[2] == "00f067aa0ba902b7" || (p[1] == traceID) != inherited || (in.Trace.Span != nil) != sampled {
			t.Errorf("%s: the worker gets %q, the log %q", what, in.Trace.Parent, in.Seen.Trace)
		}
		return in
	}
	f("no context", all, true, false)
	f("no context, none sampled", none, false, false)
	in := f("a sampled parent, whatever we sample", none, true, true, "Traceparent", parent, "tracestate", "a=1", "Tracestate", "b=2")
	if in.Trace.State != "a=1,b=2" {
		t.Errorf("tracestate is %q; want both lines", in.Trace.State)
	}
	f("a parent that is not sampled", all, false, true, "traceparent", strings.TrimSuffix(parent, "1")+"0")
	f("a later version", all, true, true, "traceparent", "01"+parent[2:]+"-what-comes")
	f("two parents", all, true, false, "traceparent", parent, "traceparent", parent)
	for _, bad := range []string{"00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", "ff" + parent[2:], parent + "-x", "x", strings.ToUpper(parent)} {
		f(bad, all, true, false, "traceparent", bad)
	}
	if in := f("state alone", all, true, false, "tracestate", "a=1"); in.Trace.State != "" {
		t.Errorf("tracestate without a parent goes on: %q", in.Trace.State)
	}
}

// TestACollectorCostsNoRequestAnything: it is down, answers 500, 503, or nothing. One warning each, what waits is
// bounded, and every span is sent or counted as lost.
func TestACollectorCostsNoRequestAnything(t *testing.T) {
	free := porttest.Address(t)
	const n = 3 * maxWaiting
	for name, set := range map[string]func(c *otlptest.Collector) (url string){
		"down": func(*otlptest.Collector) string { return "http://" + free },
		"500":  func(c *otlptest.Collector) string { c.Answer(500); return c.URL },
		"503":  func(c *otlptest.Collector) string { c.Answer(503); return c.URL },
		"slow": func(c *otlptest.Collector) string { c.Hang(true); return c.URL },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCollector(t)
			tr, log := tracing(t, set(c), 1)
			began := time.Now()
			for range n {
				tr.serve()
			}
			if took := time.Since(began); took > 10*time.Second { // a call to the collector waits for 10 s
				t.Errorf("%d requests took %v", n, took)
			}
			if waits := tr.live.Load().queue.waiting.Load(); waits > maxWaiting {
				t.Errorf("%d spans wait; at most %d", waits, maxWaiting)
			}
			waittest.Until(t, "a warning", func() bool { return len(log.With(t, "level", "WARN")) > 0 })
			tr.Close()
			if s := tr.Stats(); name == "down" && s.Failed+s.Full != n || s.Sent != 0 || s.Failed+s.Full == 0 {
				t.Errorf("%+v of %d", s, n)
			}
			if w := log.With(t, "level", "WARN"); len(w) != 1 || w[0]["reason"] == nil {
				t.Errorf("%d warnings: %s", len(w), log)
			}
		})
	}
}

func TestACollectorThatComesBackIsTold(t *testing.T) {
	c := newCollector(t)
	c.Answer(400) // it is not asked again
	tr, log := tracing(t, c.URL, 1)
	tr.serve()
	waittest.Until(t, "the warning", func() bool { return len(log.With(t, "level", "WARN")) == 1 })
	c.Answer(0)
	tr.serve()
	waittest.Until(t, "that it is over", func() bool { return len(log.With(t, "level", "INFO")) == 1 })
	if l := log.With(t, "level", "INFO")[0]; l["lost_spans"] != 1.0 {
		t.Errorf("%v; want one span lost", l)
	}
	if s := tr.Stats(); s != (Stats{On: true, Sent: 1, Failed: 1}) {
		t.Errorf("%+v", s)
	}
}

// TestTheEnvironmentIsHeard: what a collector asks for comes by the standard variables, and no log line repeats it.
func TestTheEnvironmentIsHeard(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=sesame,another-secret")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_SERVICE_NAME", "edge")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	t.Setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "4")
	c := newCollector(t)
	tr, log := tracing(t, c.URL+"/", 1)
	tr.serve()
	tr.Close()
	_, header, path, _, errs := c.Seen()
	s := c.Spans()
	if len(s) != 1 || len(errs) != 0 || path != "/v1/traces" || header.Get("X-Api-Key") != "sesame" {
		t.Fatalf("%d spans at %q, key %q, %v", len(s), path, header.Get("X-Api-Key"), errs)
	}
	if a := s[0].Attributes; a["service.name"] != "edge" || a["service.version"] != "test" || a["deployment.environment.name"] != "test" {
		t.Errorf("%v", a)
	}
	if got := s[0].Attributes["url.path"]; got != "/v1/" {
		t.Errorf("url.path is %q; want the first four characters", got)
	}
	if text := log.String(); strings.Contains(text, "secret") || strings.Contains(text, "sesame") || !strings.Contains(text, "OTEL_") {
		t.Errorf("the log is %s; want a warning of the malformed header, and nothing of it", text)
	}
	var off Tracer
	off.Configure(Config{}, "test", slog.New(slog.DiscardHandler))
	if in := off.serve(); in.Trace.Parent != "" {
		t.Error("the environment alone turns tracing on")
	}
}

// TestWordsThatAreNoUTF8: protobuf has no other texts, and a collector refuses the whole batch for one.
func TestWordsThatAreNoUTF8(t *testing.T) {
	c := newCollector(t)
	tr, _ := tracing(t, c.URL, 1)
	in := request("traceparent", parent)
	in.Method, in.Path, in.ID = "G\xffT", "/v1/\xc3\x28", "\x80"
	in.Seen.Model, in.Seen.End = "m\xfe", "\xff"
	tr.Begin(in, time.Now())
	in.Trace.Span.End(in, time.Millisecond, 3)
	tr.Close()
	s := c.Spans()
	if _, _, _, _, errs := c.Seen(); len(s) != 1 || len(errs) != 0 {
		t.Fatalf("%d spans, %v; want one", len(s), errs)
	}
	for key, want := range map[string]any{"http.request.method": "G\uFFFDT", "url.path": "/v1/\uFFFD(", "warmpath.request_id": "\uFFFD", "gen_ai.request.model": "m\uFFFD"} {
		if got := s[0].Attributes[key]; got != want {
			t.Errorf("%s is %q; want %q", key, got, want)
		}
	}
}

// TestSpansOfAnyLength: lengths of one, two and three bytes; a span with candidates fills a batch by its bytes.
func TestSpansOfAnyLength(t *testing.T) {
	c := newCollector(t)
	tr, _ := tracing(t, c.URL, 1)
	for _, n := range []int{1, 100, 125, 126, 127, 128, 129, 255, 16_380, 16_384, 100_000, 2 << 20} {
		in := request()
		tr.Begin(in, time.Now())
		in.Seen.Strategy, in.Seen.Reason, in.Seen.PromptTokens = "s", strings.Repeat("x", n), n
		in.Seen.Attempts = []record.Attempt{{Worker: strings.Repeat("w", min(n, 300)), Reason: "connect", After: time.Millisecond}}
		in.Trace.Span.End(in, time.Millisecond, 3)
	}
	tr.Close()
	all := c.Spans()
	if _, _, _, _, errs := c.Seen(); len(all) != 12 || len(errs) != 0 {
		t.Fatalf("%d spans, %v; want 12", len(all), errs)
	}
	for _, s := range all {
		n, _ := s.Attributes["warmpath.prompt_tokens"].(int)
		if got := len(s.Attributes["warmpath.reason"].(string)); got != n || n == 0 || len(s.Events) != 1 ||
			len(s.Events[0].Attributes["warmpath.worker"].(string)) != min(n, 300) {
			t.Errorf("a reason of %d bytes came with %d, events %.100v", n, got, s.Events)
		}
	}
	if s := tr.Stats(); s.Sent != 12 || s.Waiting != 0 || tr.live.Load() != nil {
		t.Errorf("%+v", s)
	}
}

// TestBytesThatWaitAreBounded: a collector that hangs, and spans with long lists of candidates.
func TestBytesThatWaitAreBounded(t *testing.T) {
	c := newCollector(t)
	c.Hang(true)
	tr, _ := tracing(t, c.URL, 1)
	for range 100 {
		in := request()
		tr.Begin(in, time.Now())
		in.Seen.Strategy, in.Seen.Reason = "s", strings.Repeat("x", 200_000)
		in.Trace.Span.End(in, time.Millisecond, 3)
	}
	q := tr.live.Load().queue
	bytes := q.bytes.Load()
	if s := tr.Stats(); bytes > maxBytes || s.Full == 0 || s.Waiting+int(s.Full) != 100 {
		t.Errorf("%d bytes wait, %+v; want at most %d bytes and the others dropped", bytes, s, maxBytes)
	}
	c.Hang(false)
}

// TestAnotherCollector: a change loses no span that waits.
func TestAnotherCollector(t *testing.T) {
	a, b := newCollector(t), newCollector(t)
	tr, log := tracing(t, a.URL, 1)
	tr.serve()
	tr.Configure(Config{Endpoint: b.URL + "/custom", Sample: 1}, "test", slog.New(slog.NewJSONHandler(log, nil)))
	tr.serve()
	tr.Close()
	if _, _, path, _, _ := b.Seen(); len(a.Spans()) != 1 || len(b.Spans()) != 1 || path != "/custom" {
		t.Errorf("%d spans at the first, %d at the second, there at %q; want one each, at /custom", len(a.Spans()), len(b.Spans()), path)
	}
}

// TestHammer: requests while the collector is changed.
func TestHammer(t *testing.T) {
	a, b := newCollector(t), newCollector(t)
	tr, log := tracing(t, a.URL, 1)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 300 {
				tr.serve("traceparent", parent)
			}
		})
	}
	for _, url := range []string{b.URL, "", a.URL} {
		tr.Configure(Config{Endpoint: url, Sample: 1}, "test", slog.New(slog.NewJSONHandler(log, nil)))
	}
	running.Wait()
	tr.Close()
	if s := tr.Stats(); uint64(len(a.Spans())+len(b.Spans())) != s.Sent {
		t.Errorf("%d spans came; %+v", len(a.Spans())+len(b.Spans()), s)
	}
}
