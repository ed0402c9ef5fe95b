package tracing

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/warmpath/warmpath/daemon/gate"
)

// Stats counts the spans since the start.
type Stats struct {
	Sent   uint64 // taken by the collector
	Failed uint64 // sent, and not taken
	Full   uint64 // never sent, as maxWaiting waited already
}

// counts are what all pipes of a tracer count.
type counts struct{ sent, failed, full atomic.Uint64 }

// Stats returns the counts so far.
func (t *Tracer) Stats() Stats {
	return Stats{Sent: t.stats.sent.Load(), Failed: t.stats.failed.Load(), Full: t.stats.full.Load()}
}

// queue stands between the SDK's batches and the sender: it bounds what waits, counts, and logs what a collector does
// once, not for each batch.
type queue struct {
	to      sdk.SpanExporter
	log     *slog.Logger
	stats   *counts
	waiting atomic.Int64  // spans that have ended and are neither sent nor given up
	losing  atomic.Bool   // the warning has been logged
	lost    atomic.Uint64 // spans since then
}

// admit takes a place in the queue. It reports false if there is none.
func (q *queue) admit() bool {
	if q.waiting.Add(1) <= maxWaiting {
		return true
	}
	q.waiting.Add(-1)
	q.stats.full.Add(1)
	q.lose(1, "the collector takes spans more slowly than requests make them; lower tracing.sample", "")
	return false
}

// ExportSpans implements sdk.SpanExporter. It never fails: the SDK would log each batch.
func (q *queue) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := q.to.ExportSpans(ctx, spans)
	n := len(spans)
	left := q.waiting.Add(-int64(n))
	if err != nil {
		q.stats.failed.Add(uint64(n))
		q.lose(n, "the collector cannot be reached or refuses them; look after it, or correct tracing.endpoint",
			gate.Cut(err.Error()))
		return nil
	}
	q.stats.sent.Add(uint64(n))
	if left < maxWaiting/2 && q.losing.CompareAndSwap(true, false) { // and not whenever a full queue has room for a batch
		q.log.Info("the collector takes spans again", "lost_spans", q.lost.Swap(0))
	}
	return nil
}

// lose counts spans that are lost, and warns of the first.
func (q *queue) lose(n int, why, failure string) {
	q.lost.Add(uint64(n))
	if q.losing.Load() || !q.losing.CompareAndSwap(false, true) {
		return
	}
	attrs := []any{"reason", why}
	if failure != "" {
		attrs = append(attrs, "error", failure)
	}
	q.log.Warn("spans of requests are lost; the requests themselves are not concerned", attrs...)
}

// Shutdown implements sdk.SpanExporter.
func (q *queue) Shutdown(ctx context.Context) error { return q.to.Shutdown(ctx) }

// hearSDK has what the SDK logs by itself go to log. The SDK has one logger a process.
func hearSDK(log *slog.Logger) {
	otel.SetLogger(logr.FromSlogHandler(sdkLog{log}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("OpenTelemetry's SDK reports an error", "error", gate.Cut(err.Error()))
	}))
}

// sdkLog keeps of the SDK's own lines the message alone: their attributes repeat what is wrong in
// OTEL_EXPORTER_OTLP_HEADERS, a secret.
type sdkLog struct{ log *slog.Logger }

// Enabled implements slog.Handler. The SDK warns one level below slog's Info.
func (s sdkLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo-1 }

// Handle implements slog.Handler.
func (s sdkLog) Handle(_ context.Context, r slog.Record) error {
	s.log.Warn("OpenTelemetry's SDK: " + r.Message + " (look at the OTEL_ variables of the environment)")
	return nil
}

// WithAttrs implements slog.Handler.
func (s sdkLog) WithAttrs([]slog.Attr) slog.Handler { return s }

// WithGroup implements slog.Handler.
func (s sdkLog) WithGroup(string) slog.Handler { return s }
