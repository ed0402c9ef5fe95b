package tracing

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// meter records the metrics of a server in OpenTelemetry's conventions for generative AI (gen_ai.server.*), and sends
// them to the collector every minute, or as OTEL_METRIC_EXPORT_INTERVAL says.
type meter struct {
	provider            *sdkmetric.MeterProvider
	took, first, apiece metric.Float64Histogram // seconds
}

// The conventions' bounds of the histograms.
var (
	tookBounds   = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	firstBounds  = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
	apieceBounds = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5}
)

func newMeter(target string, process *resource.Resource, log *slog.Logger) (*meter, error) {
	target = strings.TrimSuffix(target, "/v1/traces") + "/v1/metrics"
	to, err := otlpmetrichttp.New(context.Background(), otlpmetrichttp.WithEndpointURL(target))
	if err != nil {
		return nil, err
	}
	m := &meter{provider: sdkmetric.NewMeterProvider(sdkmetric.WithResource(process), sdkmetric.WithReader(
		sdkmetric.NewPeriodicReader(&metricExporter{Exporter: to, log: log.With("endpoint", target)})))}
	of := m.provider.Meter("github.com/warmpath/warmpath")
	histogram := func(name, about string, bounds []float64) metric.Float64Histogram {
		h, failed := of.Float64Histogram("gen_ai.server."+name, metric.WithDescription(about), metric.WithUnit("s"),
			metric.WithExplicitBucketBoundaries(bounds...))
		err = errors.Join(err, failed)
		return h
	}
	m.took = histogram("request.duration", "Time from a request's header to the last byte of its answer.", tookBounds)
	m.first = histogram("time_to_first_token", "Time to the first output of a streamed answer.", firstBounds)
	m.apiece = histogram("time_per_output_token", "Time per token of a streamed answer after its first one.", apieceBounds)
	return m, err
}

// record records a request that has ended, if it is of a kind that the conventions name. A model that nobody serves is
// a client's own word, and no series has it.
func (m *meter) record(in *message.Inbound, took time.Duration) {
	seen := &in.Seen
	if seen.Endpoint == "" {
		return
	}
	var a attributes
	a.text("gen_ai.operation.name", operation(seen))
	a.text("gen_ai.provider.name", "vllm")
	if seen.Worker != "" && seen.Status != 404 {
		a.text("gen_ai.request.model", requested(seen))
		a.text("gen_ai.response.model", own(seen.Model))
	}
	failed := failure(seen)
	a.text("error.type", failed)
	ctx, of := context.Background(), metric.WithAttributeSet(attribute.NewSet(a...))
	m.took.Record(ctx, took.Seconds(), of)
	if !seen.Stream || failed != "" || seen.FirstByte <= 0 {
		return
	}
	m.first.Record(ctx, seen.FirstByte.Seconds(), of)
	if n := seen.Usage.Output; n > 1 && seen.End == "" {
		m.apiece.Record(ctx, (took-seen.FirstByte).Seconds()/float64(n-1), of)
	}
}

// failure returns what error.type has of a request, "" if it has not failed.
func failure(seen *message.Seen) string {
	if seen.Status >= 400 {
		return strconv.Itoa(int(seen.Status))
	}
	if isBroken(seen) {
		return seen.End
	}
	return ""
}

// close sends what has been recorded since the last time.
func (m *meter) close(ctx context.Context) {
	if m != nil {
		_ = m.provider.Shutdown(ctx) // the exporter has logged why it cannot
	}
}

// metricExporter logs what a collector does once, not every minute.
type metricExporter struct {
	sdkmetric.Exporter
	log     *slog.Logger
	failing atomic.Bool
}

// Export implements sdkmetric.Exporter.
func (e *metricExporter) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	switch err := e.Exporter.Export(ctx, all); {
	case err != nil && !e.failing.Swap(true):
		e.log.Warn("metrics do not reach the collector, and are sent again every minute; requests are unaffected; look after"+
			" the collector, or correct tracing.endpoint", "error", gate.Cut(err.Error()))
	case err == nil && e.failing.Swap(false):
		e.log.Info("the collector takes metrics again")
	}
	return nil
}
