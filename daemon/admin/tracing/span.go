package tracing

import (
	"cmp"
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// End implements message.Span. The span goes to the collector that is in force by now.
func (r *recording) End(in *message.Inbound, took time.Duration, sent int64) {
	p := r.tracer.live.Load()
	if p != nil && p.meter != nil {
		p.meter.record(in, took)
	}
	switch {
	case !r.sampled:
	case p == nil:
		r.tracer.stats.failed.Add(1)
	case p.queue.mayTake():
		r.send(p.spans, in, took, sent)
	}
}

// Finished implements message.Span.
func (r *recording) Finished(id, why string) { r.answer, r.finish = own(id), why }

// send makes the SDK's span and ends it.
func (r *recording) send(spans trace.Tracer, in *message.Inbound, took time.Duration, sent int64) {
	ctx := context.WithValue(context.Background(), idsKey{}, &r.ids)
	if r.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: r.trace,
			SpanID: r.parent, TraceFlags: trace.FlagsSampled, TraceState: r.state}))
	}
	a := make(attributes, 0, 40)
	a.ofRequest(in, took, sent)
	a.ofDecision(&in.Seen)
	a.ofAnswer(&in.Seen)
	a.text("gen_ai.response.id", r.answer)
	if r.finish != "" {
		a = append(a, attribute.StringSlice("gen_ai.response.finish_reasons", []string{r.finish}))
	}
	_, span := spans.Start(ctx, name(in), trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(r.began),
		trace.WithAttributes(a...))
	r.addRetries(span, in)
	if s := &in.Seen; s.Status >= 500 || isBroken(s) {
		span.SetStatus(codes.Error, valid(s.End))
	}
	span.End(trace.WithTimestamp(r.began.Add(took)))
}

// isBroken reports whether an answer that had begun well broke off, and not by its client.
func isBroken(s *message.Seen) bool {
	return s.End != "" && s.Status < 400 && s.End != "client_gone" && s.End != message.EndContinued
}

// operations has gen_ai.operation.name of OpenTelemetry's conventions for generative AI for the kinds of requests that
// they name otherwise.
var operations = map[string]string{"completion": "text_completion", "embedding": "embeddings", "messages": "chat",
	"responses": "chat"}

// operation returns gen_ai.operation.name, "" for a request of no kind.
func operation(seen *message.Seen) string { return cmp.Or(operations[seen.Endpoint], seen.Endpoint) }

// requested returns the name by which the client asked for a model.
func requested(seen *message.Seen) string { return own(cmp.Or(seen.AliasName(), seen.Model)) }

// name returns the span's name as the conventions have it: the operation and the model. A request of no kind has its
// method. A path may hold an id, and is not in it.
func name(in *message.Inbound) string {
	if in.Seen.Endpoint == "" {
		return own(in.Method)
	}
	return strings.TrimRight(operation(&in.Seen)+" "+requested(&in.Seen), " ")
}

// addRetries adds an event for each attempt that gave the client no answer.
func (r *recording) addRetries(span trace.Span, in *message.Inbound) {
	for _, failed := range in.Seen.Attempts {
		var a attributes
		a.text("warmpath.worker", failed.Worker)
		a.text("warmpath.retry.reason", failed.Reason)
		span.AddEvent("retry", trace.WithTimestamp(r.began.Add(failed.After)), trace.WithAttributes(a...))
	}
}

// valid makes a text UTF-8. One that is not would make the collector refuse the whole batch.
func valid(v string) string { return strings.ToValidUTF8(v, "\uFFFD") }

// own returns a copy of a client's own words, cut: the request's memory would live as long as the span.
func own(v string) string { return valid(strings.Clone(gate.Cut(v))) }

// attributes are those of a span. What is not known is left out.
type attributes []attribute.KeyValue

func (a *attributes) text(key, v string) {
	if v != "" {
		*a = append(*a, attribute.String(key, valid(v)))
	}
}

// number appends a count, unless it is 0.
func (a *attributes) number(key string, n int64) {
	if n != 0 {
		a.count(key, n)
	}
}

func (a *attributes) count(key string, n int64) { *a = append(*a, attribute.Int64(key, n)) }

func (a *attributes) seconds(key string, d time.Duration) {
	if d != 0 {
		*a = append(*a, attribute.Float64(key, d.Seconds()))
	}
}

// ofRequest adds the request and the size of its answer.
func (a *attributes) ofRequest(in *message.Inbound, took time.Duration, sent int64) {
	seen := &in.Seen
	a.text("http.request.method", own(in.Method))
	if seen.Endpoint != "" {
		a.text("gen_ai.operation.name", operation(seen))
		a.text("gen_ai.provider.name", "vllm")
	}
	a.text("warmpath.key", seen.Key)
	a.text("warmpath.pool", seen.Pool)
	a.text("warmpath.strategy", seen.Strategy)
	a.text("warmpath.module_sha256", seen.Module)
	a.text("url.path", own(in.Path))
	a.number("http.response.status_code", int64(seen.Status))
	a.number("http.response.body.size", sent)
	a.text("warmpath.request_id", own(in.ID))
	a.text("gen_ai.request.model", requested(seen))
	a.text("warmpath.alias", seen.AliasName())
	a.seconds("warmpath.seconds", took)
}

// ofDecision adds the chosen worker and the reason.
func (a *attributes) ofDecision(seen *message.Seen) {
	if seen.Strategy == "" {
		return
	}
	a.text("warmpath.worker", seen.Worker)
	a.text("warmpath.reason", strings.Clone(seen.Reason))
	a.text("warmpath.fallback", seen.Fallback)
	a.text("warmpath.session_kind", seen.Session)
	a.text("warmpath.pair", seen.PairName())
	if s := seen.Split; s != nil {
		a.text("warmpath.prefiller", s.Prefiller)
		a.text("warmpath.prefill", s.Result)
		a.seconds("warmpath.prefill_seconds", s.Took)
	}
	a.number("warmpath.prompt_tokens", int64(seen.PromptTokens))
	a.number("warmpath.prompt_blocks", int64(seen.PromptBlocks))
	a.number("warmpath.matched_blocks", int64(seen.Matched))
	a.number("warmpath.believed_tokens", int64(seen.Believed))
	a.seconds("warmpath.queue_seconds", seen.Queue)
	a.seconds("warmpath.pick_seconds", seen.PickTime)
	a.number("warmpath.pick_fuel", seen.Fuel)
	if len(seen.Candidates) > 0 {
		*a = append(*a, attribute.String("warmpath.candidates", string(seen.CandidatesJSON())))
	}
}

// ofAnswer adds how the answer went, and the engine's own counts.
func (a *attributes) ofAnswer(seen *message.Seen) {
	a.number("warmpath.retries", int64(seen.Retries))
	a.seconds("warmpath.ttft_seconds", seen.FirstByte)
	a.text("warmpath.end", seen.End)
	if seen.Stream {
		*a = append(*a, attribute.Bool("gen_ai.request.stream", true))
	}
	if seen.Endpoint != "" && seen.Status == 200 {
		a.text("gen_ai.response.model", own(seen.Model))
	}
	if !seen.Usage.Known {
		return
	}
	a.count("gen_ai.usage.input_tokens", int64(seen.Usage.Prompt))
	a.number("gen_ai.usage.output_tokens", int64(seen.Usage.Output))
	if seen.Usage.CachedKnown {
		a.count("gen_ai.usage.cache_read.input_tokens", int64(seen.Usage.Cached))
	}
}

var _ message.Span = (*recording)(nil)
