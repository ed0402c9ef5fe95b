package tracing

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/record"
)

// BenchmarkSpan is what a traced request pays, with the encoding and the sending of its span. The collector reads and
// answers at once.
func BenchmarkSpan(b *testing.B) {
	tr := new(Tracer)
	c := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer c.Close()
	tr.Configure(Config{Endpoint: c.URL, Sample: 1}, "bench", slog.New(slog.DiscardHandler))
	q := tr.live.Load().queue
	b.ReportAllocs()
	for b.Loop() {
		for q.waiting.Load() > maxWaiting/2 {
			runtime.Gosched()
		}
		in := request()
		tr.Begin(in, time.Now())
		s := &in.Seen
		s.Status, s.Endpoint, s.Pool, s.Strategy, s.Worker, s.Reason, s.Model = 200, "chat", "main", "prefixaware", "w1", "longest prefix", "sim"
		s.PromptTokens, s.PromptBlocks, s.Matched, s.Believed, s.Fuel = 300, 8, 7, 200, 1500
		s.Queue, s.PickTime, s.FirstByte = time.Millisecond, time.Microsecond, time.Millisecond
		s.Usage = record.Usage{Prompt: 300, Output: 20, Known: true}
		in.Trace.Span.End(in, time.Millisecond, 300)
	}
	b.StopTimer()
	tr.Close()
	if s := tr.Stats(); s.Failed+s.Full > 0 {
		b.Errorf("%+v: spans are lost", s)
	}
}
