// Package otlptest is a collector of OTLP over HTTP for tests: it decodes spans and metrics by their generated types,
// and can be made to misbehave.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	measured "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it came.
type Span struct {
	Name, TraceID, SpanID, ParentID, State string
	Start, End                             time.Time
	Server, Failed                         bool
	Attributes                             map[string]any // with those of the process
	Events                                 []Event
}

// Event is an event of a span.
type Event struct {
	Name       string
	At         time.Time
	Attributes map[string]any
}

// Histogram is a series of a histogram as it came last.
type Histogram struct {
	Name, Unit string
	Count      int
	Sum        float64
	Bounds     []float64
	Attributes map[string]any // without those of the process
}

// Collector takes spans and metrics at URL.
type Collector struct {
	URL string

	mu      sync.Mutex // guards all below
	spans   []Span
	series  []Histogram // of the last call
	raw     []byte      // of all bodies
	header  http.Header
	path    string
	errors  []error
	calls   int
	answer  int           // status; 0 = 200
	release chan struct{} // closed: calls are answered; nil = at once
}

// Start makes a collector. stop closes it.
func Start() (c *Collector, stop func()) {
	c = new(Collector)
	s := httptest.NewServer(http.HandlerFunc(c.serve))
	c.URL = s.URL
	return c, func() {
		c.Hang(false)
		s.Close()
	}
}

// Answer makes the collector answer every call with that status; 0 = as it should.
func (c *Collector) Answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = status
}

// Hang makes the collector answer nothing until Hang(false).
func (c *Collector) Hang(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.release != nil {
		close(c.release)
		c.release = nil
	}
	if on {
		c.release = make(chan struct{})
	}
}

// Spans returns what came so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Histograms returns the series of the last call with metrics.
func (c *Collector) Histograms() []Histogram {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.series)
}

// Seen returns all that came, as bytes, the header and the path of the last call, how many calls there were, and the
// errors in them.
func (c *Collector) Seen() (raw []byte, header http.Header, path string, calls int, errs []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.raw), c.header.Clone(), c.path, c.calls, slices.Clone(c.errors)
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.calls++
	answer, release := c.answer, c.release
	c.mu.Unlock()
	body, err := read(r)
	if release != nil {
		select {
		case <-release:
		case <-r.Context().Done():
			return
		}
	}
	if answer != 0 {
		http.Error(w, "told to", answer)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header, c.path = r.Header.Clone(), r.URL.Path
	c.raw = append(c.raw, body...)
	switch {
	case err != nil:
	case strings.HasSuffix(c.path, "/v1/metrics"):
		err = c.measure(body)
	default:
		err = c.take(body)
	}
	if err != nil {
		c.errors = append(c.errors, err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func read(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Type") != "application/x-protobuf" {
		return nil, fmt.Errorf("content type %q", r.Header.Get("Content-Type"))
	}
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// take decodes a call. The caller holds c.mu.
func (c *Collector) take(body []byte) error {
	var call collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &call); err != nil {
		return err
	}
	for _, process := range call.ResourceSpans {
		for _, scope := range process.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, decoded(s, process.Resource.GetAttributes()))
			}
		}
	}
	return nil
}

// measure decodes a call with metrics. The caller holds c.mu.
func (c *Collector) measure(body []byte) error {
	var call measured.ExportMetricsServiceRequest
	if err := proto.Unmarshal(body, &call); err != nil {
		return err
	}
	c.series = nil
	for _, process := range call.ResourceMetrics {
		for _, scope := range process.ScopeMetrics {
			for _, m := range scope.Metrics {
				for _, p := range m.GetHistogram().GetDataPoints() {
					c.series = append(c.series, Histogram{Name: m.Name, Unit: m.Unit, Count: int(p.Count), Sum: p.GetSum(),
						Bounds: p.ExplicitBounds, Attributes: attributes(p.Attributes)})
				}
			}
		}
	}
	return nil
}

func decoded(s *trace.Span, process []*common.KeyValue) Span {
	d := Span{Name: s.Name, TraceID: hex.EncodeToString(s.TraceId), SpanID: hex.EncodeToString(s.SpanId),
		ParentID: hex.EncodeToString(s.ParentSpanId), State: s.TraceState,
		Start: time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
		Server: s.Kind == trace.Span_SPAN_KIND_SERVER, Failed: s.Status.GetCode() == trace.Status_STATUS_CODE_ERROR,
		Attributes: attributes(append(slices.Clone(process), s.Attributes...))}
	for _, e := range s.Events {
		d.Events = append(d.Events, Event{Name: e.Name, At: time.Unix(0, int64(e.TimeUnixNano)),
			Attributes: attributes(e.Attributes)})
	}
	return d
}

func attributes(list []*common.KeyValue) map[string]any {
	m := map[string]any{}
	for _, kv := range list {
		switch v := kv.Value.GetValue().(type) {
		case *common.AnyValue_StringValue:
			m[kv.Key] = v.StringValue
		case *common.AnyValue_ArrayValue: // of texts
			var all []string
			for _, one := range v.ArrayValue.Values {
				all = append(all, one.GetStringValue())
			}
			m[kv.Key] = strings.Join(all, ",")
		case *common.AnyValue_IntValue:
			m[kv.Key] = int(v.IntValue)
		case *common.AnyValue_DoubleValue:
			m[kv.Key] = v.DoubleValue
		case *common.AnyValue_BoolValue:
			m[kv.Key] = v.BoolValue
		}
	}
	return m
}
