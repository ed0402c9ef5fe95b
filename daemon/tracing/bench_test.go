package tracing

import (
	"log/slog"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/route"
)

// BenchmarkSpan is what a traced request pays, with the encoding and the sending of its span.
func BenchmarkSpan(b *testing.B) {
	tr := new(Tracer)
	c := newCollector(b)
	tr.Configure(Config{Endpoint: c.URL, Sample: 1}, "bench", slog.New(slog.DiscardHandler))
	b.ReportAllocs()
	for b.Loop() {
		in := request()
		tr.Begin(in, time.Now())
		s := &in.Seen
		s.Status, s.Endpoint, s.Pool, s.Strategy, s.Worker, s.Reason, s.Model = 200, "chat", "main", "prefixaware", "w1", "longest prefix", "sim"
		s.PromptTokens, s.PromptBlocks, s.Matched, s.Believed, s.Fuel = 300, 8, 7, 200, 1500
		s.Queue, s.PickTime, s.FirstByte = time.Millisecond, time.Microsecond, time.Millisecond
		s.Usage = route.Usage{Prompt: 300, Output: 20, Known: true}
		in.Trace.Span.End(in, time.Millisecond, 300)
	}
	b.StopTimer()
	tr.Close()
	b.ReportMetric(float64(tr.Stats().Full)/float64(b.N), "dropped/op")
}
