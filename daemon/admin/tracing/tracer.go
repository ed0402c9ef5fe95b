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
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/warmpath/warmpath/daemon/request/message"
)

// Config sets where spans go. Its zero value is off.
type Config struct {
	Endpoint string  // URL of the collector's OTLP/HTTP; without a path /v1/traces is meant. "" = off
	Sample   float64 // share of the requests without a traceparent, 0 to 1
	Metrics  bool    // gen_ai.server.* of all requests go there, too, to /v1/metrics
}

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
	sampler sdk.Sampler // of traces that clients began
	share   share       // of the others
	spans   trace.Tracer
	queue   *queue
	meter   *meter // nil = no metrics are sent
}

// close sends the spans and metrics that wait, within lastSpans.
func (p *pipe) close() {
	ctx, cancel := context.WithTimeout(context.Background(), lastSpans)
	defer cancel()
	var metrics sync.WaitGroup
	metrics.Go(func() { p.meter.close(ctx) })
	_ = p.queue.Shutdown(context.Background()) // what it cannot send is counted
	metrics.Wait()
}

// Configure puts c in force. It logs an error in c, and nothing is traced then: a request is worth more than its span.
// version is the binary's.
func (t *Tracer) Configure(c Config, version string, log *slog.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c == t.conf {
		return
	}
	t.conf = c
	var next *pipe
	if c.Endpoint != "" {
		logSDK(log)
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
	to, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(target))
	if err != nil {
		return nil, err
	}
	process, err := resource.New(context.Background(), resource.WithHost(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "warmpath"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // last: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are over ours
	if err != nil {
		return nil, err
	}
	var m *meter
	if c.Metrics {
		m, err = newMeter(target, process, log)
		if err != nil {
			return nil, err
		}
	}
	q := newQueue(to, &t.stats, log.With("endpoint", target))
	spans := sdk.NewTracerProvider(sdk.WithSpanProcessor(q), sdk.WithResource(process),
		sdk.WithSampler(sdk.AlwaysSample()), sdk.WithIDGenerator(knownIDs{})).Tracer("github.com/warmpath/warmpath")
	return &pipe{spans: spans, queue: q, meter: m, sampler: sdk.ParentBased(sdk.TraceIDRatioBased(c.Sample)),
		share: newShare(c.Sample)}, nil
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
func (t *Tracer) Begin(in *message.Inbound, at time.Time) {
	if p := t.live.Load(); p != nil {
		begin(t, p, in, at)
	}
}
