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

	"github.com/warmpath/warmpath/daemon/request/message"
)

// ids are the names of a span. parent is zero if the span is the first of its trace.
type ids struct {
	trace  trace.TraceID
	span   trace.SpanID
	parent trace.SpanID
}

// recording is the span of a request whose trace is sampled, or what the metrics need of another one. The SDK's own
// span is made when the request ends.
type recording struct {
	ids
	tracer  *Tracer
	began   time.Time
	state   trace.TraceState
	sampled bool
	answer  string // see Finished
	finish  string // likewise
}

// idsKey is the key of a context's ids.
type idsKey struct{}

// knownIDs gives the SDK the ids that the worker has got already.
type knownIDs struct{}

// NewIDs implements sdk.IDGenerator.
func (knownIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(idsKey{}).(*ids)
	return id.trace, id.span
}

// NewSpanID implements sdk.IDGenerator.
func (k knownIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, span := k.NewIDs(ctx)
	return span
}

// begin decides whether the span is sampled, and sets what the worker gets.
func begin(t *Tracer, p *pipe, in *message.Inbound, at time.Time) {
	var id ids
	var state trace.TraceState
	_, sent := in.Lookup(message.HeaderTraceParent)
	sampled := false
	if sent {
		sampled, state = id.follow(p.sampler, in)
	} else {
		id.draw()
		sampled = p.share.takes(id.trace)
	}
	in.Trace.Parent, in.Trace.State = id.traceParent(sampled), state.String()
	in.Seen.Trace = in.Trace.Parent[len("00-") : len("00-")+2*len(id.trace)]
	if sampled || p.meter != nil {
		in.Trace.Span = &recording{tracer: t, ids: id, began: at, state: state, sampled: sampled}
	}
}

// follow reads the client's context, and asks the sampler.
func (id *ids) follow(sampler sdk.Sampler, in *message.Inbound) (sampled bool, state trace.TraceState) {
	ctx := propagation.TraceContext{}.Extract(context.Background(), (*carrier)(in))
	parent := trace.SpanContextFromContext(ctx)
	id.trace, id.parent = parent.TraceID(), parent.SpanID()
	id.draw()
	verdict := sampler.ShouldSample(sdk.SamplingParameters{ParentContext: ctx, TraceID: id.trace, Name: in.Method,
		Kind: trace.SpanKindServer})
	return verdict.Decision == sdk.RecordAndSample, verdict.Tracestate
}

// draw makes the ids that are not known.
func (id *ids) draw() {
	for !id.trace.IsValid() {
		binary.BigEndian.PutUint64(id.trace[:8], rand.Uint64())
		binary.BigEndian.PutUint64(id.trace[8:], rand.Uint64())
	}
	for !id.span.IsValid() {
		binary.BigEndian.PutUint64(id.span[:], rand.Uint64())
	}
}

// share decides for a trace that begins here what sdk.TraceIDRatioBased decides, without the context and the parameters
// that this asks for (TestTheShareIsTheSDKs). Most requests pay for nothing else.
type share struct{ bound uint64 }

func newShare(of float64) share { return share{bound: uint64(max(0, min(1, of)) * (1 << 63))} }

// takes reports whether the trace is sampled.
func (s share) takes(id trace.TraceID) bool { return binary.BigEndian.Uint64(id[8:])>>1 < s.bound }

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
type carrier message.Inbound

// Get implements propagation.TextMapCarrier. A client that sends two traceparents sends none.
func (c *carrier) Get(name string) string { return (*message.Inbound)(c).All(name) }

// Set implements propagation.TextMapCarrier. Extract does not set.
func (c *carrier) Set(string, string) {}

// Keys implements propagation.TextMapCarrier. The propagator of W3C does not ask.
func (c *carrier) Keys() []string { return nil }
