package tracing

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/gate"
)

// recording is the span of a request whose trace is sampled.
type recording struct {
	span  trace.Span
	queue *queue
}

// End implements exchange.Span.
func (r *recording) End(in *exchange.Inbound, took time.Duration, sent int64) {
	if !r.queue.admit() {
		return
	}
	seen := &in.Seen
	if seen.Endpoint != "" {
		r.span.SetName(in.Method + " " + seen.Endpoint) // a path may hold an id
	}
	l := lists.Get().(*list)
	l.request(in, took, sent)
	l.decision(seen)
	l.answer(seen)
	r.span.SetAttributes(l.all...)
	l.release()
	arrived := time.Now().Add(-took)
	for _, a := range seen.Attempts {
		r.span.AddEvent("retry", trace.WithTimestamp(arrived.Add(a.After)), trace.WithAttributes(
			attribute.String("warmpath.worker", a.Worker), attribute.String("warmpath.retry.reason", a.Reason)))
	}
	if seen.Status >= 500 || seen.End != "" && seen.Status < 400 && seen.End != "client_gone" {
		r.span.SetStatus(codes.Error, seen.End)
	}
	r.span.End()
}

// list gathers attributes. The SDK copies them.
type list struct{ all []attribute.KeyValue }

var lists = sync.Pool{New: func() any { return &list{all: make([]attribute.KeyValue, 0, 40)} }}

func (l *list) release() {
	clear(l.all)
	l.all = l.all[:0]
	lists.Put(l)
}

// text adds a text that is the router's own. What is not known is left out.
func (l *list) text(key, v string) {
	if v != "" {
		l.all = append(l.all, attribute.String(key, v))
	}
}

// words adds a client's own words: a copy, as a slice of a header field would keep the header alive, and the secret
// in it.
func (l *list) words(key, v string) { l.text(key, strings.Clone(gate.Cut(v))) }

// number adds a count, unless it is 0.
func (l *list) number(key string, n int64) {
	if n != 0 {
		l.all = append(l.all, attribute.Int64(key, n))
	}
}

// seconds adds a time, unless it is 0.
func (l *list) seconds(key string, d time.Duration) {
	if d != 0 {
		l.all = append(l.all, attribute.Float64(key, d.Seconds()))
	}
}

// request adds what came and what went back.
func (l *list) request(in *exchange.Inbound, took time.Duration, sent int64) {
	seen := &in.Seen
	l.words("http.request.method", in.Method)
	l.words("url.path", in.Path)
	l.number("http.response.status_code", int64(seen.Status))
	l.number("http.response.body.size", sent)
	l.words("warmpath.request_id", in.ID)
	l.text("warmpath.key", seen.Key)
	l.words("gen_ai.request.model", seen.Model)
	l.text("gen_ai.operation.name", seen.Endpoint)
	l.seconds("warmpath.seconds", took)
}

// decision adds who was chosen, by whom and why.
func (l *list) decision(seen *exchange.Seen) {
	l.text("warmpath.pool", seen.Pool)
	if seen.Strategy == "" {
		return
	}
	l.text("warmpath.strategy", seen.Strategy)
	l.text("warmpath.module_sha256", seen.Module)
	l.text("warmpath.worker", seen.Worker)
	l.text("warmpath.reason", seen.Reason)
	l.text("warmpath.fallback", seen.Fallback)
	l.text("warmpath.session_kind", seen.Session)
	l.number("warmpath.prompt_tokens", int64(seen.PromptTokens))
	l.number("warmpath.prompt_blocks", int64(seen.PromptBlocks))
	l.number("warmpath.matched_blocks", int64(seen.Matched))
	l.number("warmpath.believed_tokens", int64(seen.Believed))
	l.seconds("warmpath.queue_seconds", seen.Queue)
	l.seconds("warmpath.pick_seconds", seen.PickTime)
	l.number("warmpath.pick_fuel", seen.Fuel)
	if len(seen.Candidates) > 0 {
		if text, err := json.Marshal(seen.Candidates); err == nil {
			l.text("warmpath.candidates", string(text))
		}
	}
}

// answer adds how the answer went, and the engine's own counts.
func (l *list) answer(seen *exchange.Seen) {
	l.number("warmpath.retries", int64(seen.Retries))
	l.seconds("warmpath.ttft_seconds", seen.FirstByte)
	l.text("warmpath.end", seen.End)
	if seen.Stream {
		l.all = append(l.all, attribute.Bool("gen_ai.request.stream", true))
	}
	if !seen.Usage.Known {
		return
	}
	l.all = append(l.all, attribute.Int("gen_ai.usage.input_tokens", seen.Usage.Prompt))
	l.number("gen_ai.usage.output_tokens", int64(seen.Usage.Output))
	if seen.Usage.CachedKnown {
		l.all = append(l.all, attribute.Int("gen_ai.usage.cache_read.input_tokens", seen.Usage.Cached))
	}
}

var _ exchange.Span = (*recording)(nil)
