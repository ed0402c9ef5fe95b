package tracing

import (
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// recording is the span of a request whose trace is sampled.
type recording struct {
	ids
	tracer *Tracer
	began  time.Time
	method string
	state  string
	remote bool // the parent is the client's
}

// recordings are used again: they keep no part of a request but bytes.
var recordings = sync.Pool{New: func() any { return new(recording) }}

// desk is the memory that spans are encoded in, one after the other, and the fields that the last one had.
type desk struct {
	wire
	of   setting
	same wire // the fields of it
}

var desks = sync.Pool{New: func() any { return &desk{wire: make(wire, 0, 2048)} }}

// widest is the memory that desks keep of a span.
const widest = 64 << 10

// setting is the fields that most spans have in common. Its texts are the configuration's and the program's own: none
// of them is a part of a request, which it would keep alive.
type setting struct{ method, endpoint, key, pool, strategy, module string }

// settingOf returns that of a request.
func settingOf(in *exchange.Inbound) setting {
	s := &in.Seen
	return setting{method: known(in.Method), endpoint: s.Endpoint, key: s.Key, pool: s.Pool, strategy: s.Strategy,
		module: s.Module}
}

// known returns the program's own text for a method that a client may send, "" if there is none.
func known(method string) string {
	switch method {
	case "POST":
		return "POST"
	case "GET":
		return "GET"
	}
	return ""
}

// encode appends the fields of a setting.
func (s *setting) encode(w *wire) {
	a := attributes{w, spanAttributes}
	if s.method != "" {
		s.name(w, s.method)
		a.text("http.request.method", s.method)
	}
	a.text("gen_ai.operation.name", s.endpoint)
	a.text("warmpath.key", s.key)
	a.text("warmpath.pool", s.pool)
	a.text("warmpath.strategy", s.strategy)
	a.text("warmpath.module_sha256", s.module)
}

// name appends the span's name. A path may hold an id, and is not in it.
func (s *setting) name(w *wire, method string) {
	if s.endpoint != "" {
		method += " " + s.endpoint
	}
	w.text(spanName, method)
}

// End implements exchange.Span. The span goes to the collector that is in force by now.
func (r *recording) End(in *exchange.Inbound, took time.Duration, sent int64) {
	p := r.tracer.live.Load()
	switch {
	case p == nil:
		r.tracer.stats.failed.Add(1)
	case p.queue.mayTake():
		d := desks.Get().(*desk)
		r.encode(d, in, took, sent)
		p.queue.add(d.wire)
		if cap(d.wire) <= widest {
			d.wire = d.wire[:0]
			desks.Put(d)
		}
	}
	*r = recording{}
	recordings.Put(r)
}

// encode appends the fields of the span.
func (r *recording) encode(d *desk, in *exchange.Inbound, took time.Duration, sent int64) {
	w, seen := &d.wire, &in.Seen
	if of := settingOf(in); of != d.of {
		d.of, d.same = of, d.same[:0]
		of.encode(&d.same)
	}
	*w = append(*w, d.same...)
	a := attributes{w, spanAttributes}
	if d.of.method == "" {
		d.of.name(w, gate.Cut(in.Method))
		a.text("http.request.method", gate.Cut(in.Method))
	}
	w.bytes(spanTraceID, r.trace[:])
	w.bytes(spanID, r.span[:])
	if r.state != "" {
		w.text(spanState, r.state)
	}
	flags := uint32(1 | flagKnowsRemote) // 1: sampled
	if r.remote {
		w.bytes(spanParent, r.parent[:])
		flags |= flagRemote
	}
	w.fixed32(spanFlags, flags)
	w.enum(spanKind, kindServer)
	w.time(spanStart, r.began)
	w.time(spanEnd, r.began.Add(took))
	a.ofRequest(in, took, sent)
	a.ofDecision(seen)
	a.ofAnswer(seen)
	for i := range seen.Attempts {
		r.retry(w, &seen.Attempts[i])
	}
	if seen.Status >= 500 || seen.End != "" && seen.Status < 400 && seen.End != "client_gone" {
		var status wire
		status.text(statusMessage, seen.End)
		status.enum(statusCode, statusError)
		w.bytes(spanStatus, status)
	}
}

// retry appends the event of an attempt that gave the client no answer.
func (r *recording) retry(w *wire, failed *route.Attempt) {
	var event wire
	event.time(eventTime, r.began.Add(failed.After))
	event.text(eventName, "retry")
	a := attributes{&event, eventAttributes}
	a.text("warmpath.worker", failed.Worker)
	a.text("warmpath.retry.reason", failed.Reason)
	w.bytes(spanEvents, event)
}

// ofRequest adds the request and the size of its answer, without the setting. A client's own words are cut.
func (a attributes) ofRequest(in *exchange.Inbound, took time.Duration, sent int64) {
	seen := &in.Seen
	a.text("url.path", gate.Cut(in.Path))
	a.number("http.response.status_code", int64(seen.Status))
	a.number("http.response.body.size", sent)
	a.text("warmpath.request_id", gate.Cut(in.ID))
	a.text("gen_ai.request.model", gate.Cut(seen.Model))
	a.seconds("warmpath.seconds", took)
}

// ofDecision adds the chosen worker, the strategy and the reason.
func (a attributes) ofDecision(seen *exchange.Seen) {
	if seen.Strategy == "" {
		return
	}
	a.text("warmpath.worker", seen.Worker)
	a.text("warmpath.reason", seen.Reason)
	a.text("warmpath.fallback", seen.Fallback)
	a.text("warmpath.session_kind", seen.Session)
	a.number("warmpath.prompt_tokens", int64(seen.PromptTokens))
	a.number("warmpath.prompt_blocks", int64(seen.PromptBlocks))
	a.number("warmpath.matched_blocks", int64(seen.Matched))
	a.number("warmpath.believed_tokens", int64(seen.Believed))
	a.seconds("warmpath.queue_seconds", seen.Queue)
	a.seconds("warmpath.pick_seconds", seen.PickTime)
	a.number("warmpath.pick_fuel", seen.Fuel)
	if len(seen.Candidates) > 0 {
		a.json("warmpath.candidates", seen.CandidatesJSON())
	}
}

// ofAnswer adds how the answer went, and the engine's own counts.
func (a attributes) ofAnswer(seen *exchange.Seen) {
	a.number("warmpath.retries", int64(seen.Retries))
	a.seconds("warmpath.ttft_seconds", seen.FirstByte)
	a.text("warmpath.end", seen.End)
	if seen.Stream {
		a.flag("gen_ai.request.stream")
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

var _ exchange.Span = (*recording)(nil)
