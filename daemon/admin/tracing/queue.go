package tracing

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// The spans that wait for the collector, those of a batch on its way among them, are bounded: 2 s of 1,000 requests a
// second, and by bytes where candidates are in them. A batch is sent once it has batchSize spans, or after
// batchDelay.
const (
	maxWaiting = 2048
	maxBytes   = 8 << 20 // a collector takes 20 MiB in a message by default
	maxBatch   = 256
	batchDelay = time.Second
	spanBytes  = 2 << 10 // of a span, beside its texts
)

// Stats counts the spans since the start.
type Stats struct {
	On      bool   // tracing is configured now
	Waiting int    // ended, neither sent nor given up
	Sent    uint64 // taken by the collector
	Failed  uint64 // sent, and not taken
	Full    uint64 // never sent, as maxWaiting or maxBytes waited already
}

// counts are what all pipes of a tracer count.
type counts struct{ sent, failed, full atomic.Uint64 }

// Stats returns the counts so far.
func (t *Tracer) Stats() Stats {
	s := Stats{Sent: t.stats.sent.Load(), Failed: t.stats.failed.Load(), Full: t.stats.full.Load()}
	if p := t.live.Load(); p != nil {
		s.On, s.Waiting = true, int(p.queue.waiting.Load())
	}
	return s
}

// queue is the SDK's batch processor between two counts: of the spans that it gets, and of those that its exporter has
// sent. It never holds more than it has room for, so it drops none itself, which it would not count. It logs what a
// collector does once, not for each batch.
type queue struct {
	batches sdk.SpanProcessor
	to      sdk.SpanExporter
	log     *slog.Logger
	stats   *counts
	ending  context.Context // done: what is being sent is given up
	giveUp  context.CancelFunc

	waiting, bytes atomic.Int64 // spans that are neither sent nor given up

	mu     sync.RWMutex // guards closed, and keeps the batches open for one who reads it
	closed bool

	losing atomic.Bool   // the warning has been logged
	lost   atomic.Uint64 // spans since then
}

func newQueue(to sdk.SpanExporter, stats *counts, log *slog.Logger) *queue {
	q := &queue{to: to, stats: stats, log: log}
	q.ending, q.giveUp = context.WithCancel(context.Background())
	q.batches = sdk.NewBatchSpanProcessor((*exporter)(q), sdk.WithMaxQueueSize(maxWaiting),
		sdk.WithMaxExportBatchSize(maxBatch), sdk.WithBatchTimeout(batchDelay), sdk.WithExportTimeout(0))
	return q
}

// sizeOf returns about the bytes of a span.
func sizeOf(s sdk.ReadOnlySpan) int64 {
	n := spanBytes
	for _, kv := range s.Attributes() {
		n += len(kv.Value.AsString())
	}
	return int64(n)
}

// mayTake reports whether a span may be made: it counts one that would find no room.
func (q *queue) mayTake() bool {
	if q.waiting.Load() < maxWaiting {
		return true
	}
	q.full()
	return false
}

// full counts a span that finds no room.
func (q *queue) full() {
	q.stats.full.Add(1)
	q.lose(1, "the collector takes spans more slowly than requests make them; lower tracing.sample", "")
}

// OnStart implements sdk.SpanProcessor.
func (q *queue) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		q.stats.failed.Add(1)
		return
	}
	size := sizeOf(s)
	if q.waiting.Add(1) > maxWaiting || q.bytes.Add(size) > maxBytes {
		q.remove(1, size)
		q.full()
		return
	}
	q.batches.OnEnd(s)
}

// remove counts spans off that wait no longer, and returns how many do.
func (q *queue) remove(n int, bytes int64) (left int64) {
	q.bytes.Add(-bytes)
	return q.waiting.Add(-int64(n))
}

// ForceFlush implements sdk.SpanProcessor.
func (q *queue) ForceFlush(ctx context.Context) error { return q.batches.ForceFlush(ctx) }

// Shutdown implements sdk.SpanProcessor. It sends what waits, within lastSpans, and stops even in the middle of a
// retry.
func (q *queue) Shutdown(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	defer q.giveUp()
	defer time.AfterFunc(lastSpans, q.giveUp).Stop()
	return q.batches.Shutdown(ctx)
}

// exporter is the queue as the SDK's processor sends by it.
type exporter queue

// ExportSpans implements sdk.SpanExporter. The queue logs and counts an error, so that the SDK gets none.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	q := (*queue)(e)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.ending, cancel)()
	err := q.to.ExportSpans(ctx, spans)
	bytes := int64(0)
	for _, s := range spans {
		bytes += sizeOf(s)
	}
	left := q.remove(len(spans), bytes)
	if err != nil {
		q.stats.failed.Add(uint64(len(spans)))
		q.lose(len(spans), "the collector cannot be reached or refuses them; look after it, or correct tracing.endpoint",
			gate.Cut(err.Error()))
		return nil
	}
	q.stats.sent.Add(uint64(len(spans)))
	if left < maxWaiting/2 && q.losing.CompareAndSwap(true, false) { // and not whenever a full queue has room for a batch
		q.log.Info("the collector takes spans again", "lost_spans", q.lost.Swap(0))
	}
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (e *exporter) Shutdown(ctx context.Context) error { return e.to.Shutdown(ctx) }

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
	q.log.Warn("spans of requests are lost; requests are unaffected", attrs...)
}
