package front

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/inflate"
	"github.com/warmpath/warmpath/daemon/transport/listen"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// request is a client's request on the client's side, from its header to the last byte of its answer.
type request struct {
	*handler
	epoch   *Epoch               // read once: the request is served under no other
	fc      *fasthttp.RequestCtx // until a relay has the connection
	conn    *listen.Conn         // nil for one that room listen has not accepted
	in      message.Inbound
	body    bodyReader
	life    *message.Life // of a request that is counted, until end
	watch   uint64
	ended   atomic.Bool
	root    int8 // number of the epoch's prefix that was removed, from 1; 0 = none
	sound   bool // all readers agree on what the request is
	slim    bool // fasthttp's copies of the header are dropped
	arrived time.Time
	sent    int64  // bytes of the answer's body
	extra   *extra // nil but from ownFields to dropFields
}

var requests = sync.Pool{New: func() any { return new(request) }}

// extra is the room for fields that the router adds to an answer's header. A stream would keep it for minutes.
type extra [5]upstream.Field

var extras = sync.Pool{New: func() any { return new(extra) }}

// newRequest begins a request, of which fasthttp has read the header.
func newRequest(h *handler, fc *fasthttp.RequestCtx) *request {
	q := requests.Get().(*request)
	q.handler = h
	q.arrived = time.Now()
	q.epoch = h.backend.Epoch()
	q.fc = fc
	q.root = cutRoot(fc, q.epoch.RootPaths)
	q.conn = listen.From(fc.Conn())
	in := &q.in
	in.Method = method(fc)
	in.Path = pathOf(fc)
	in.Query = string(fc.URI().QueryString())
	in.Host = string(fc.Host())
	if q.conn != nil {
		q.conn.HeadCame()
		in.Remote = q.conn.Remote()
		in.TLS = q.conn.IsTLS()
	} else {
		in.Remote = fc.RemoteIP().String()
	}
	in.Epoch = &q.epoch.Epoch
	in.Endpoint = message.Classify(in.Method, in.Path)
	q.readHeader()
	return q
}

// readHeader reads the header fields, and gives fasthttp the values that it did not find, or that were hidden from it
// so far.
func (q *request) readHeader() {
	header := &q.fc.Request.Header
	fields, f := readHeader(q.in.Header, header.RawHeaders(), header.IsHTTP11())
	q.in.SetHeader(fields)
	q.sound = f.sound && isPlainTarget(q.fc)
	if f.length > 0 {
		header.SetContentLength(f.length) // see beforeBody
	}
	if f.close {
		q.fc.SetConnectionClose() // fasthttp has looked at the request's own field already
	}
}

// malformed returns the fault of a request that is refused by its head alone, if it is to be.
func (q *request) malformed() message.Fault {
	switch {
	case !q.sound:
		return message.FaultFraming
	case !slices.Contains(fiber.DefaultMethods, q.in.Method):
		return message.FaultRequest
	}
	return message.Fault{}
}

// refuse answers what needs no body: bad framing, preflights, unknown paths and keys, too long bodies, and overload. It
// returns nil if the request is to be served.
func (q *request) refuse() *message.Outbound {
	in := &q.in
	if f := q.malformed(); f.Status != 0 {
		in.ID = gate.RequestID("")
		q.fc.SetConnectionClose()
		return q.turnAway(f, message.OpenAI)
	}
	in.ID = gate.RequestID(in.Get("X-Request-Id"))
	if q.asksWebSocket() {
		q.closeAfter() // what follows may be frames, and would be read as requests
		in.Socket = in.Endpoint.Sockets && q.conn != nil
		q.moveKey()
	}
	if status, header, text, ok := q.epoch.CORS.Preflight(in.Method, in.Get); ok {
		return preflight(status, header, text)
	}
	if in.Endpoint.Role == message.Nobody {
		return q.turnAway(message.FaultNothing(in.Path), in.Endpoint.Shape)
	}
	in.Path = in.Endpoint.Path
	caller, ok := q.epoch.Keys.Check(in.Get("Authorization"), in.Get("X-Api-Key"))
	if !ok {
		return q.turnAway(message.FaultKey, in.Endpoint.Shape)
	}
	in.Caller = caller
	if f := q.excess(); f.Status != 0 {
		return q.turnAway(f, in.Endpoint.Shape)
	}
	return nil
}

// excess returns the fault of a request that asks for more than there is, if it does.
func (q *request) excess() message.Fault {
	switch {
	case q.fc.Request.Header.ContentLength() > q.epoch.MaxBody:
		return message.FaultTooLarge
	case q.asksWebSocket() && !q.in.Socket:
		return message.FaultWebSocket
	}
	return q.traffic.full(q.epoch)
}

// turnAway answers a request of which only the header, or part of the body, has been read.
func (q *request) turnAway(f message.Fault, s message.Shape) *message.Outbound {
	switch f.Code {
	case message.FaultOverload.Code:
		if q.conn != nil {
			q.conn.LackRoom()
		}
		q.meter.Shed("", f.Code)
		f.Retry = max(f.Retry, q.epoch.RetryAfter(q.arrived))
	case message.FaultNoDecoder.Code:
		q.meter.Shed("", f.Code)
	case message.FaultFull.Code:
		q.in.Seen.Key = q.in.Caller.Name
		q.meter.Crowded(&q.in.Seen, q.epoch.Pools)
		f.Retry = max(f.Retry, q.epoch.RetryAfter(q.arrived))
	}
	q.in.Seen.End = f.Code
	return f.Outbound(s)
}

// admit counts the request, reads its body and passes it to the exchange.
func (q *request) admit() *message.Outbound {
	q.life = q.traffic.begin()
	q.in.Account = q.books.Open()
	q.in.Account.From(q, len(q.fc.Request.Header.RawHeaders()), q.readBuffer)
	q.backend.Trace(&q.in, q.arrived)
	if f := q.body.fill(&q.in, q.fc, q.epoch, newHolding(q.handler, &q.in, q.epoch)); f.Status != 0 {
		q.closeUnread()
		if f == message.FaultSlowBody && q.conn != nil {
			q.conn.LingerBriefly()
		}
		q.end()
		out := q.turnAway(f, q.in.Endpoint.Shape)
		if f == message.FaultPacking {
			out.Set("Accept-Encoding", inflate.Known)
		}
		return out
	}
	if q.conn != nil {
		q.watch = q.conn.Watch(q)
	}
	out := q.serve()
	if q.refusesSocket(out) {
		out = q.turnAway(message.FaultWebSocket, q.in.Endpoint.Shape)
	}
	if !q.body.done() {
		q.closeUnread()
	}
	if out.Stream == nil {
		q.end()
	}
	return out
}

// serve has the exchange answer the request. Meanwhile the client gets comments, if it is to have some.
func (q *request) serve() *message.Outbound {
	if q.mayComment() {
		q.in.Comments = &message.Comments{Every: q.epoch.Keepalive, To: &commenter{conn: q.conn, head: q.streamHead()}}
	}
	out := q.backend.Serve(q.life, &q.in)
	q.in.Seen.Comments = q.in.Comments.End()
	if q.in.Seen.Comments > 0 {
		out = out.InEvents(&q.in)
	}
	return out
}

// mayComment reports whether comments may come before the answer: HTTP/1.0 knows no chunks, and while the answer to an
// earlier request on the connection is still to be written nothing else may be.
func (q *request) mayComment() bool {
	return q.epoch.Keepalive > 0 && q.in.Endpoint.Role == message.Worker && q.in.Method == "POST" && q.conn != nil &&
		q.fc.Request.Header.IsHTTP11() && q.conn.Settled(writeBuffer)
}

// streamHead returns the head of a stream of which nothing else is known yet.
func (q *request) streamHead() answerHead {
	defer q.dropFields()
	fields := slices.Clone(q.ownFields(&message.Outbound{Status: 200}))
	events := []upstream.Field{{Name: "Content-Type", Value: "text/event-stream"}}
	return answerHead{status: 200, fields: [2][]upstream.Field{fields, events}, length: unknown}
}

// Gone ends the request. The listener calls it when the client closes its side before the answer has ended.
func (q *request) Gone() { q.life.End(message.ErrClientGone) }

// end subtracts the request from the count, if it was counted, and drops the reference to the client. It may be
// called more than once.
func (q *request) end() {
	if q.life == nil || q.ended.Swap(true) {
		return
	}
	if q.conn != nil && q.watch != 0 {
		q.conn.Unwatch(q.watch)
	}
	q.in.Account.End(time.Now())
	q.traffic.end(q.life)
}

// Slim drops fasthttp's two copies of the header while the request waits: with cookies and tokens they may be larger
// than all the rest. What fasthttp looks at after the answer stays. It implements [account.Front].
func (q *request) Slim() {
	if q.slim || q.fc == nil || !q.body.done() {
		return
	}
	q.slim = true
	h := &q.fc.Request.Header
	protocol, method, uri := string(h.Protocol()), string(h.Method()), string(h.RequestURI())
	length, closes := h.ContentLength(), h.ConnectionClose()
	if q.slimmed.Add(2*int64(len(h.RawHeaders()))) > mostSlimmed {
		q.slimmed.Store(0)
		go runtime.GC() // else the heap grows by as much as there is before the collector looks
	}
	*h = fasthttp.RequestHeader{}
	h.SetProtocol(protocol)
	h.SetMethod(method)
	h.SetRequestURI(uri)
	h.SetContentLength(length)
	if closes {
		h.SetConnectionClose()
	}
}

// mostSlimmed is how many bytes of headers are dropped before they are collected: some 300 requests of 24 KB.
const mostSlimmed = 16 << 20

// closeUnread makes the connection end with the answer if a part of the body has not been read.
func (q *request) closeUnread() {
	if !q.body.done() || q.body.r == nil && q.fc.RequestBodyStream() != nil {
		q.closeAfter()
	}
}

// closeAfter makes the connection end with the answer, politely: a close with bytes unread would be a reset, which can
// destroy the answer on its way.
func (q *request) closeAfter() {
	q.fc.SetConnectionClose()
	if q.conn != nil {
		q.conn.Linger()
	}
}

// finishPage ends a request that fiber has answered with a page, which has no line and no count. A browser needs more
// fields. What follows an unread body or the handshake of a WebSocket would be read as the next request.
func (q *request) finishPage() {
	if q.fc.RequestBodyStream() != nil || q.asksWebSocket() {
		q.fc.SetConnectionClose()
	}
	for _, h := range q.epoch.CORS.Headers(q.in.Get("Origin")) {
		q.fc.Response.Header.Set(h[0], h[1])
	}
	q.forget()
}

// ownFields returns what the answer's header gets beside the worker's fields, and notes the answer's status. The fields
// hold until dropFields.
func (q *request) ownFields(out *message.Outbound) []upstream.Field {
	if q.traffic.leaving.Load() {
		q.fc.SetConnectionClose()
	}
	q.extra = extras.Get().(*extra)
	fields := q.extra[:0]
	if q.in.ID != "" {
		fields = append(fields, upstream.Field{Name: "X-Request-Id", Value: q.in.ID})
	}
	switch shape := q.in.Endpoint.Shape; {
	case shape == message.AWS:
		fields = append(fields, upstream.Field{Name: message.HeaderAWSRequest, Value: q.in.ID})
	case shape == message.Anthropic || q.in.SpeaksAnthropic():
		fields = append(fields, upstream.Field{Name: message.HeaderAnthropicRequest, Value: q.in.ID})
	}
	q.in.Seen.Status = int32(out.Status)
	return corsFields(q.epoch.CORS, fields, out, q.in.Get("Origin"))
}

// dropFields gives the memory of the fields back.
func (q *request) dropFields() {
	*q.extra = extra{}
	extras.Put(q.extra)
	q.extra = nil
}

// answer gives an answer in one piece, and ends the request.
func (q *request) answer(out *message.Outbound) {
	q.sent = int64(len(out.Body))
	respond(q.fc, q.ownFields(out), out)
	q.dropFields()
	q.record(time.Now())
	q.forget()
	out.Release()
}

// forget returns the request's memory. Nothing may use the request after it.
func (q *request) forget() {
	q.body.free(&q.in)
	clear(q.in.Header) // else the pool keeps their text
	*q = request{in: message.Inbound{Header: q.in.Header[:0], Seen: message.Seen{Record: q.in.Seen.Memory()}}}
	requests.Put(q)
}

// record counts and logs the request at its end.
func (q *request) record(now time.Time) {
	q.meter.Answered(&q.in.Seen)
	took := now.Sub(q.arrived)
	q.backend.Ended(&q.in, took, q.sent)
	if q.in.Trace.Span != nil {
		q.in.Trace.Span.End(&q.in, took, q.sent)
	}
	q.access.log(&q.in, ended{at: now, took: took, sent: q.sent, slower: q.epoch.Log.Slower})
}

// recordAfterPanic records a request that may be half done. A second panic would end the process.
func (q *request) recordAfterPanic() {
	defer func() { _ = recover() }()
	q.record(time.Now())
}
