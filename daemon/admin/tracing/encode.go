package tracing

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/sdk/resource"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of OTLP's messages (opentelemetry/proto/trace/v1/trace.proto, common/v1/common.proto). TestARequestIsASpan of
// daemon reads them by the generated types.
const (
	resourceSpansResource, resourceSpansScope = 1, 2 // of ResourceSpans
	resourceAttributes                        = 1    // of Resource
	scopeSpansScope, scopeSpansSpans          = 1, 2 // of ScopeSpans
	scopeName                                 = 1    // of InstrumentationScope
	keyValueKey, keyValueValue                = 1, 2 // of KeyValue
	anyText, anyBool, anyInt, anyDouble       = 1, 2, 3, 4

	spanTraceID, spanID, spanState, spanParent, spanName, spanKind = 1, 2, 3, 4, 5, 6
	spanStart, spanEnd, spanAttributes, spanEvents                 = 7, 8, 9, 11
	spanStatus, spanFlags                                          = 15, 16

	eventTime, eventName, eventAttributes = 1, 2, 3
	statusMessage, statusCode             = 2, 3

	kindServer, statusError     = 2, 2
	flagKnowsRemote, flagRemote = 0x100, 0x200 // of spanFlags, above W3C's
)

// wire is a message in protobuf's encoding. The calls append to it.
type wire []byte

func (w *wire) fixed64(field protowire.Number, v uint64) {
	*w = protowire.AppendFixed64(protowire.AppendTag(*w, field, protowire.Fixed64Type), v)
}

func (w *wire) fixed32(field protowire.Number, v uint32) {
	*w = protowire.AppendFixed32(protowire.AppendTag(*w, field, protowire.Fixed32Type), v)
}

func (w *wire) enum(field protowire.Number, v uint64) {
	*w = protowire.AppendVarint(protowire.AppendTag(*w, field, protowire.VarintType), v)
}

func (w *wire) time(field protowire.Number, at time.Time) { w.fixed64(field, uint64(at.UnixNano())) }

// bytes appends bytes, or a whole message.
func (w *wire) bytes(field protowire.Number, v []byte) {
	*w = protowire.AppendBytes(protowire.AppendTag(*w, field, protowire.BytesType), v)
}

// text appends a text.
func (w *wire) text(field protowire.Number, v string) { w.valid(field, valid(v)) }

// valid appends a text that is UTF-8.
func (w *wire) valid(field protowire.Number, v string) {
	*w = protowire.AppendString(protowire.AppendTag(*w, field, protowire.BytesType), v)
}

// valid makes a text UTF-8. One that is not would make the collector refuse the whole batch.
func valid(v string) string {
	if utf8.ValidString(v) {
		return v
	}
	return strings.ToValidUTF8(v, "\uFFFD")
}

// attributes appends key values as a field.
type attributes struct {
	*wire
	field protowire.Number
}

// head appends all of an attribute but its value, which takes so many bytes with its tag. Fields below 16 have a tag of
// one byte, and keys a length of one.
func (a attributes) head(key string, value int) {
	w := append(*a.wire, byte(a.field)<<3|byte(protowire.BytesType))
	w = protowire.AppendVarint(w, uint64(2+len(key)+sized(value)))
	w = append(w, keyValueKey<<3|byte(protowire.BytesType), byte(len(key)))
	w = append(w, key...)
	w = append(w, keyValueValue<<3|byte(protowire.BytesType))
	*a.wire = protowire.AppendVarint(w, uint64(value))
}

// sized returns the bytes of a field that holds n bytes: tag, length and these.
func sized(n int) int { return 1 + protowire.SizeBytes(n) }

// text appends a text. What is not known is left out.
func (a attributes) text(key, v string) {
	if v == "" {
		return
	}
	v = valid(v)
	a.head(key, sized(len(v)))
	a.wire.valid(anyText, v)
}

// json appends a text that is JSON, and so UTF-8.
func (a attributes) json(key string, v []byte) {
	a.head(key, sized(len(v)))
	a.bytes(anyText, v)
}

// number appends a count, unless it is 0.
func (a attributes) number(key string, n int64) {
	if n != 0 {
		a.count(key, n)
	}
}

// count appends a count.
func (a attributes) count(key string, n int64) {
	a.head(key, 1+protowire.SizeVarint(uint64(n)))
	a.enum(anyInt, uint64(n))
}

// flag appends a bool.
func (a attributes) flag(key string) {
	a.head(key, 2)
	a.enum(anyBool, 1)
}

// seconds appends a time, unless it is 0.
func (a attributes) seconds(key string, d time.Duration) {
	if d != 0 {
		a.head(key, 1+8)
		a.fixed64(anyDouble, math.Float64bits(d.Seconds()))
	}
}

// encodedProcess returns the fields of a ResourceSpans that are those of all spans.
func encodedProcess(process *resource.Resource) []byte {
	var of, all wire
	each := attributes{&of, resourceAttributes}
	for _, kv := range process.Attributes() {
		each.text(string(kv.Key), kv.Value.String())
	}
	all.bytes(resourceSpansResource, of)
	return all
}
