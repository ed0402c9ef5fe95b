package message

import (
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Trace is how a tracer follows a request. The tracer sets it once the header has been read. Zero: no tracer is
// configured.
type Trace struct {
	Parent string // traceparent for the worker, in place of the client's; "" = the client's fields go on as they are
	State  string // tracestate for the worker; "" = none
	Span   Span   // nil = the trace is not sampled, and no metrics are sent
}

// Span is what a tracer records of a request.
type Span interface {
	// Finished records the id of the engine's answer, and why it ended its first output, as prompt.Reply.FinishReason has
	// it, before End.
	Finished(id, why string)
	// End records the end, once, after the last byte of the answer: sent counts the bytes of its body. in is borrowed
	// for the call.
	End(in *Inbound, took time.Duration, sent int64)
}

// W3C Trace Context's names.
const (
	HeaderTraceParent = "traceparent"
	HeaderTraceState  = "tracestate"
)

// replaces reports whether the tracer's field takes the place of the client's.
func (t *Trace) replaces(name string) bool {
	return t.Parent != "" &&
		(strings.EqualFold(name, HeaderTraceParent) || strings.EqualFold(name, HeaderTraceState))
}

// appendTo appends the fields that the worker gets.
func (t *Trace) appendTo(out []upstream.Field) []upstream.Field {
	if t.Parent == "" {
		return out
	}
	out = append(out, upstream.Field{Name: HeaderTraceParent, Value: t.Parent})
	if t.State != "" {
		out = append(out, upstream.Field{Name: HeaderTraceState, Value: t.State})
	}
	return out
}
