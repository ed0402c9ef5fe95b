package tracing

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/warmpath/warmpath/daemon/exchange"
)

// ids are the names of a span. parent is zero if the span is the first of its trace.
type ids struct {
	trace  trace.TraceID
	span   trace.SpanID
	parent trace.SpanID
}

// begin reads the client's context, decides whether the span is sampled, and sets what the worker gets.
func begin(t *Tracer, sampler sdk.Sampler, in *exchange.Inbound, at time.Time) {
	ctx := context.Background()
	var id ids
	if _, sent := in.Lookup(exchange.HeaderTraceParent); sent {
		ctx = propagation.TraceContext{}.Extract(ctx, (*carrier)(in))
		parent := trace.SpanContextFromContext(ctx)
		id.trace, id.parent = parent.TraceID(), parent.SpanID()
	}
	for !id.trace.IsValid() {
		binary.BigEndian.PutUint64(id.trace[:8], rand.Uint64())
		binary.BigEndian.PutUint64(id.trace[8:], rand.Uint64())
	}
	for !id.span.IsValid() {
		binary.BigEndian.PutUint64(id.span[:], rand.Uint64())
	}
	verdict := sampler.ShouldSample(sdk.SamplingParameters{ParentContext: ctx, TraceID: id.trace, Name: in.Method,
		Kind: trace.SpanKindServer})
	sampled := verdict.Decision == sdk.RecordAndSample
	in.Trace.Parent = id.traceParent(sampled)
	in.Trace.State = verdict.Tracestate.String()
	in.Seen.Trace = in.Trace.Parent[len("00-") : len("00-")+2*len(id.trace)]
	if sampled {
		r := recordings.Get().(*recording)
		*r = recording{tracer: t, ids: id, began: at, method: in.Method, state: in.Trace.State, remote: id.parent.IsValid()}
		in.Trace.Span = r
	}
}

// traceParent writes W3C Trace Context's version 0: its one flag is that the trace is sampled.
func (id *ids) traceParent(sampled bool) string {
	var text [55]byte
	b := hex.AppendEncode(append(text[:0], "00-"...), id.trace[:])
	b = hex.AppendEncode(append(b, '-'), id.span[:])
	if sampled {
		return string(append(b, "-01"...))
	}
	return string(append(b, "-00"...))
}

// carrier is a request whose trace context is read from its header.
type carrier exchange.Inbound

// Get implements propagation.TextMapCarrier. A client that sends two traceparents sends none.
func (c *carrier) Get(name string) string { return (*exchange.Inbound)(c).All(name) }

// Set implements propagation.TextMapCarrier. Extract does not set.
func (c *carrier) Set(string, string) {}

// Keys implements propagation.TextMapCarrier. The propagator of W3C does not ask.
func (c *carrier) Keys() []string { return nil }
