package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/warmpath/warmpath/daemon/exchange"
)

// Config is where spans go. Its zero value is off.
type Config struct {
	Endpoint string  // URL of the collector's OTLP/HTTP; without a path /v1/traces is meant. "" = off
	Sample   float64 // share of the requests without a traceparent, 0 to 1
}

// maxWaiting bounds the spans that wait for the collector, those of a batch on its way among them: some 6 MB, and 2 s
// of 1,000 requests a second. A batch of maxBatch is sent once it is full, or after batchDelay.
const (
	maxWaiting = 2048
	maxBatch   = 512
	batchDelay = time.Second
)

// lastSpans is how long the spans of the last requests may take when tracing ends.
const lastSpans = 2 * time.Second

// Tracer makes the spans of requests. Its zero value is off. It is safe for concurrent use.
type Tracer struct {
	live  atomic.Pointer[pipe] // nil = off
	stats counts

	mu     sync.Mutex // one change at a time
	conf   Config
	ending sync.WaitGroup // pipes that were replaced
}

// pipe is a way to a collector.
type pipe struct {
	tracer   trace.Tracer
	provider *sdk.TracerProvider
	queue    *queue
}

// Configure makes c what is in force. What is wrong with it is logged, and nothing is traced then: a request is worth
// more than its span. version is the binary's.
func (t *Tracer) Configure(c Config, version string, log *slog.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c == t.conf {
		return
	}
	t.conf = c
	var next *pipe
	if c.Endpoint != "" {
		hearSDK(log)
		var err error
		next, err = t.open(c, version, log)
		if err != nil {
			log.Error("no request is traced: correct [tracing], or the OTEL_ variables of the environment", "error", err)
		}
	}
	if before := t.live.Swap(next); before != nil {
		t.ending.Go(before.close)
	}
}

// open makes the way to a collector. It does not wait for one.
func (t *Tracer) open(c Config, version string, log *slog.Logger) (*pipe, error) {
	target, err := collector(c.Endpoint)
	if err != nil {
		return nil, err
	}
	sender, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(target))
	if err != nil {
		return nil, err
	}
	process, err := resource.New(context.Background(), resource.WithHost(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "warmpath"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // last: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are over ours
	if err != nil {
		return nil, err
	}
	q := &queue{to: sender, stats: &t.stats, log: log.With("endpoint", target)}
	batches := sdk.NewBatchSpanProcessor(q, sdk.WithMaxQueueSize(maxWaiting), sdk.WithMaxExportBatchSize(maxBatch),
		sdk.WithBatchTimeout(batchDelay))
	p := &pipe{queue: q, provider: sdk.NewTracerProvider(sdk.WithResource(process), sdk.WithSpanProcessor(batches),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(c.Sample))))}
	p.tracer = p.provider.Tracer("github.com/warmpath/warmpath")
	return p, nil
}

// collector returns the URL that spans are posted to.
func collector(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("tracing: endpoint: %w", err)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// close sends the spans that wait, for lastSpans at most. After that the sender is stopped even in the middle of a
// retry.
func (p *pipe) close() {
	ctx, cancel := context.WithTimeout(context.Background(), lastSpans)
	defer cancel()
	_ = p.provider.Shutdown(ctx) // what could not be sent is counted and logged by the queue
	_ = p.queue.to.Shutdown(ctx)
}

// Close sends the spans that wait, within lastSpans, and ends tracing.
func (t *Tracer) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conf = Config{}
	if p := t.live.Swap(nil); p != nil {
		p.close()
	}
	t.ending.Wait()
}

// Begin begins the span of a request that came at that time, if tracing is on.
func (t *Tracer) Begin(in *exchange.Inbound, at time.Time) {
	p := t.live.Load()
	if p == nil {
		return
	}
	var w3c propagation.TraceContext
	ctx := w3c.Extract(context.Background(), (*carrier)(in))
	ctx, span := p.tracer.Start(ctx, in.Method, trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindServer))
	w3c.Inject(ctx, (*carrier)(in))
	in.Seen.Trace = span.SpanContext().TraceID().String()
	if span.IsRecording() {
		in.Trace.Span = &recording{span: span, queue: p.queue}
	}
}

// carrier is a request whose trace context is read from its header, and set for its worker.
type carrier exchange.Inbound

// Get implements propagation.TextMapCarrier. A client that sends two traceparents sends none.
func (c *carrier) Get(name string) string { return (*exchange.Inbound)(c).All(name) }

// Set implements propagation.TextMapCarrier.
func (c *carrier) Set(name, value string) {
	switch name {
	case exchange.HeaderTraceParent:
		c.Trace.Parent = value
	case exchange.HeaderTraceState:
		c.Trace.State = value
	}
}

// Keys implements propagation.TextMapCarrier. The propagator of W3C does not ask.
func (c *carrier) Keys() []string { return nil }
