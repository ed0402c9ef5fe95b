package tracing

import (
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// The spans that wait for the collector, those of a batch on its way among them, are bounded: 2 s of 1,000 requests a
// second, and by bytes where candidates are in them. A batch is sent once it has so many spans or bytes (a collector
// takes 20 MiB by default), or after batchDelay.
const (
	maxWaiting = 2048
	maxBytes   = 8 << 20
	maxBatch   = 256 // what is copied from one memory to the next then stays in a core's own cache
	fullBatch  = 1 << 20
	batchDelay = time.Second
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

// batch is spans as fields of a ScopeSpans, behind room for what stands before them in a message.
type batch struct {
	scope wire
	spans int
}

// add appends a span.
func (b *batch) add(span wire, room int) {
	if len(b.scope) == 0 {
		b.scope = append(b.scope, make([]byte, room)...)
	}
	b.scope.bytes(scopeSpansSpans, span)
	b.spans++
}

// queue gathers encoded spans, and sends them in batches. It counts, and logs what a collector does once, not for each
// batch.
type queue struct {
	to      otlptrace.Client
	process []byte // in each ResourceSpans
	head    []byte // in each ScopeSpans
	room    int    // for both, and for the tag and the length of the ScopeSpans
	log     *slog.Logger
	stats   *counts
	wake    chan struct{} // the batch is full
	stop    chan struct{} // closed: send what waits, and end
	ended   chan struct{} // closed: it has

	waiting atomic.Int64 // spans that are neither sent nor given up

	mu     sync.Mutex // guards the three below
	next   batch
	bytes  int // of next and of the batch on its way
	closed bool

	losing atomic.Bool   // the warning has been logged
	lost   atomic.Uint64 // spans since then
}

func newQueue(to otlptrace.Client, process []byte, stats *counts, log *slog.Logger) *queue {
	var name, head wire
	name.text(scopeName, "github.com/warmpath/warmpath")
	head.bytes(scopeSpansScope, name)
	q := &queue{to: to, process: process, head: head, room: len(process) + 2*binary.MaxVarintLen64 + len(head),
		stats: stats, log: log, wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	go q.run()
	return q
}

// mayTake reports whether a span may be encoded: it counts one that would find no room.
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

// add appends a span to the next batch.
func (q *queue) add(span wire) {
	q.mu.Lock()
	switch {
	case q.closed:
		q.mu.Unlock()
		q.stats.failed.Add(1)
		return
	case q.waiting.Load() >= maxWaiting || q.bytes+len(span) > maxBytes:
		q.mu.Unlock()
		q.full()
		return
	}
	q.waiting.Add(1)
	before := len(q.next.scope)
	q.next.add(span, q.room)
	q.bytes += len(q.next.scope) - before
	ready := q.next.spans >= maxBatch || len(q.next.scope) >= fullBatch
	q.mu.Unlock()
	if ready {
		select {
		case q.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// run sends batches until stop.
func (q *queue) run() {
	defer close(q.ended)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-ctx.Done():
			return
		case <-q.stop:
		}
		select {
		case <-ctx.Done():
		case <-time.After(lastSpans):
			cancel()
		}
	}()
	tick := time.NewTicker(batchDelay)
	defer tick.Stop()
	var spare wire
	for open := true; open; {
		select {
		case <-tick.C:
		case <-q.wake:
		case <-q.stop:
			open = false
		}
		spare = q.send(ctx, spare)
	}
}

// send sends the spans that wait, if there are any. spare is memory for the next batch; send returns that of this one.
func (q *queue) send(ctx context.Context, spare wire) wire {
	q.mu.Lock()
	now := q.next
	if now.spans == 0 {
		q.mu.Unlock()
		return spare
	}
	q.next = batch{scope: spare[:0]}
	q.mu.Unlock()
	err := q.to.UploadTraces(ctx, []*tracepb.ResourceSpans{q.message(now.scope)})
	q.mu.Lock()
	q.bytes -= len(now.scope)
	q.mu.Unlock()
	left := q.waiting.Add(-int64(now.spans))
	switch {
	case err != nil:
		q.stats.failed.Add(uint64(now.spans))
		q.lose(now.spans, "the collector cannot be reached or refuses them; look after it, or correct tracing.endpoint",
			gate.Cut(err.Error()))
	default:
		q.stats.sent.Add(uint64(now.spans))
		if left < maxWaiting/2 && q.losing.CompareAndSwap(true, false) { // and not whenever a full queue has room for a batch
			q.log.Info("the collector takes spans again", "lost_spans", q.lost.Swap(0))
		}
	}
	if cap(now.scope) > 2*fullBatch {
		return nil
	}
	return now.scope
}

// message returns a batch in the form that the SDK's client posts. Its fields are encoded already, and set as unknown
// ones, which the generated types keep and write as they are. It writes what stands before the spans at the end of the
// room left for it, so that no span is copied.
func (q *queue) message(scope wire) *tracepb.ResourceSpans {
	before := make(wire, 0, q.room)
	before = append(before, q.process...)
	before = protowire.AppendTag(before, resourceSpansScope, protowire.BytesType)
	before = protowire.AppendVarint(before, uint64(len(q.head)+len(scope)-q.room))
	before = append(before, q.head...)
	all := scope[q.room-len(before):]
	copy(all, before)
	m := new(tracepb.ResourceSpans)
	m.ProtoReflect().SetUnknown(protoreflect.RawFields(all))
	return m
}

// close sends what waits, within lastSpans, and stops the sender even in the middle of a retry.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	close(q.stop)
	<-q.ended
	_ = q.to.Stop(context.Background()) // an HTTP client's does nothing that can fail
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
