package front

import (
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/inflate"
	"github.com/warmpath/warmpath/daemon/transport/listen"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Meter counts what the front answers. [exchange.Meter] counts the rest.
type Meter interface {
	// Answered counts a request that nothing else has counted.
	Answered(s *exchange.Seen)
	// Shed counts load that was turned away.
	Shed(pool, reason string)
}

// reception is what the visits share.
type reception struct {
	log     *slog.Logger
	meter   Meter
	backend Backend
	access  accessLog
	traffic traffic

	serveConn func(net.Conn) error // serves the requests on a connection that fasthttp has not accepted
	maxHeader int                  // bytes of a request's head
}

// visit is a client's request on the client's side, from its header to the last byte of its answer.
type visit struct {
	*reception
	epoch   *Epoch // read once: the request is served under no other
	way     way    // until a relay has the connection
	conn    *listen.Conn
	in      exchange.Inbound
	body    intake
	life    *exchange.Life // of a visit that is counted, until end
	watch   uint64
	once    sync.Once
	arrived time.Time
	sent    int64  // bytes of the answer's body
	extra   *extra // nil but from ownFields to dropFields
}

var visits = sync.Pool{New: func() any { return new(visit) }}

// extra is room for what an answer's header gets beside the worker's fields. A stream would keep it for minutes.
type extra [5]upstream.Field

var extras = sync.Pool{New: func() any { return new(extra) }}

// arrive begins a visit.
func arrive(r *reception, w way) *visit {
	v := visits.Get().(*visit)
	v.reception = r
	v.arrived = time.Now()
	v.epoch = r.backend.Epoch()
	v.way = w
	v.conn = w.conn()
	w.line(&v.in)
	v.in.Epoch = &v.epoch.Epoch
	v.in.Endpoint = exchange.Classify(v.in.Method, v.in.Path)
	v.in.TLS = v.conn != nil && v.conn.IsTLS()
	return v
}

// refuse answers what needs no body: bad framing, preflights, unknown paths and keys, and overload. It returns nil if
// the request is to be served.
func (v *visit) refuse() *exchange.Outbound {
	in := &v.in
	fields, sound := v.way.fields(in.Header)
	in.SetHeader(fields)
	if !sound {
		in.ID = gate.RequestID("")
		return v.turnAway(exchange.FaultFraming, exchange.OpenAI)
	}
	in.ID = gate.RequestID(in.Get("X-Request-Id"))
	if status, header, text, ok := v.epoch.CORS.Preflight(in.Method, in.Get); ok {
		return preflight(status, header, text)
	}
	if in.Endpoint.Role == exchange.Nobody {
		return v.turnAway(exchange.FaultUnknownURL, in.Endpoint.Shape)
	}
	in.Path = in.Endpoint.Path
	caller, ok := v.epoch.Keys.Check(in.Get("Authorization"), in.Get("X-Api-Key"))
	if !ok {
		return v.turnAway(exchange.FaultKey, in.Endpoint.Shape)
	}
	in.Caller = caller
	if f, ok := v.way.turnedAway(); ok {
		return v.turnAway(f, in.Endpoint.Shape)
	}
	return nil
}

// turnAway answers a request of which only the header, or part of the body, has been read.
func (v *visit) turnAway(f exchange.Fault, s exchange.Shape) *exchange.Outbound {
	if f.Code == exchange.FaultOverload.Code || f.Code == exchange.FaultFull.Code {
		v.meter.Shed("", f.Code)
		f.Retry = max(f.Retry, v.epoch.RetryAfter(v.arrived))
	}
	v.in.Seen.End = f.Code
	return f.Outbound(s)
}

// admit counts the request, reads its body and passes it to the exchange.
func (v *visit) admit() *exchange.Outbound {
	v.life = v.traffic.begin()
	v.backend.Trace(&v.in, v.arrived)
	if f := v.body.fill(&v.in, v.way, v.epoch); f.Status != 0 {
		v.closeUnread()
		if f == exchange.FaultSlowBody && v.conn != nil {
			v.conn.LingerBriefly()
		}
		v.end()
		out := v.turnAway(f, v.in.Endpoint.Shape)
		if f == exchange.FaultPacking {
			out.Set("Accept-Encoding", inflate.Known)
		}
		return out
	}
	if v.conn != nil {
		v.watch = v.conn.Watch(v)
	}
	out := v.backend.Serve(v.life, &v.in)
	if !v.body.done() {
		v.closeUnread()
	}
	if out.Stream == nil {
		v.end()
	}
	return out
}

// Gone ends the request. The listener calls it when the client closes its side before the answer has ended.
func (v *visit) Gone() { v.life.End(exchange.ErrClientGone) }

// end counts the request down, if it was counted, and forgets the client. It may be called more than once.
func (v *visit) end() {
	if v.life == nil {
		return
	}
	v.once.Do(func() {
		if v.conn != nil && v.watch != 0 {
			v.conn.Unwatch(v.watch)
		}
		v.traffic.end(v.life)
	})
}

// closeUnread makes the connection end with the answer, politely: a close with bytes unread would be a reset, which can
// destroy the answer on its way.
func (v *visit) closeUnread() {
	if v.body.done() && !v.way.unread() {
		return
	}
	v.way.end()
	if v.conn != nil {
		v.conn.Linger()
	}
}

// ownFields returns what the answer's header gets beside the worker's fields, and notes the answer's status. The fields
// hold until dropFields.
func (v *visit) ownFields(out *exchange.Outbound) []upstream.Field {
	if v.traffic.leaving.Load() {
		v.way.end()
	}
	v.extra = extras.Get().(*extra)
	fields := v.extra[:0]
	if v.in.ID != "" {
		fields = append(fields, upstream.Field{Name: "X-Request-Id", Value: v.in.ID})
	}
	switch shape := v.in.Endpoint.Shape; {
	case shape == exchange.AWS:
		fields = append(fields, upstream.Field{Name: exchange.HeaderAWSRequest, Value: v.in.ID})
	case shape == exchange.Anthropic || v.in.SpeaksAnthropic():
		fields = append(fields, upstream.Field{Name: exchange.HeaderAnthropicRequest, Value: v.in.ID})
	}
	v.in.Seen.Status = out.Status
	return corsFields(v.epoch.CORS, fields, out, v.in.Get("Origin"))
}

// dropFields gives the memory of the fields back.
func (v *visit) dropFields() {
	*v.extra = extra{}
	extras.Put(v.extra)
	v.extra = nil
}

// answer gives an answer in one piece, and ends the visit.
func (v *visit) answer(out *exchange.Outbound) {
	v.sent = int64(len(out.Body))
	now := time.Now()
	v.way.answer(v.ownFields(out), out, now)
	v.dropFields()
	v.release(now)
	out.Release()
}

// release counts and logs the request, and gives the visit's memory back. Nothing may use the request after it.
func (v *visit) release(now time.Time) {
	v.record(now)
	v.body.free(&v.in)
	*v = visit{in: exchange.Inbound{Header: v.in.Header[:0], Seen: exchange.Seen{Record: v.in.Seen.Memory()}}}
	visits.Put(v)
}

// record counts and logs the request at its end.
func (v *visit) record(now time.Time) {
	v.meter.Answered(&v.in.Seen)
	took := now.Sub(v.arrived)
	v.backend.Ended(&v.in, took, v.sent)
	if v.in.Trace.Span != nil {
		v.in.Trace.Span.End(&v.in, took, v.sent)
	}
	v.access.log(&v.in, ended{at: now, took: took, sent: v.sent, slower: v.epoch.Log.Slower})
}

// recordAfterPanic records a request whose visit may be half done. A second panic would end the process.
func (v *visit) recordAfterPanic() {
	defer func() { _ = recover() }()
	v.record(time.Now())
}
