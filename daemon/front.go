package daemon

import (
	"bytes"
	"errors"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/listen"
	"github.com/warmpath/warmpath/daemon/upstream"
)

// errClientGone is why the context of a request ends whose client has left.
var errClientGone = errors.New("the client left")

// visit is a client's request on fiber's side, from its header to the last byte of its answer.
type visit struct {
	d       *Daemon
	conn    *listen.Conn
	in      Inbound
	body    intake
	life    *life // of begun; never used again, see there
	begun   bool  // it has been counted
	watch   uint64
	raw     *[]byte // pooled: the first part of the body
	once    sync.Once
	arrived time.Time
	sent    int64             // bytes of the answer's body
	extra   [5]upstream.Field // room for what the answer's header gets beside the worker's
}

var visits = sync.Pool{New: func() any { return new(visit) }}

// serve is fiber's handler for everything but /health and /ready.
func (d *Daemon) serve(c *fiber.Ctx) error {
	c.Context().SetUserValue(attended, true)
	d.attend(c.Context())
	return nil
}

// past takes the requests that are nearly all of them past fiber, whose context and router cost each 2 us.
func (d *Daemon) past(router fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fc *fasthttp.RequestCtx) {
		if fc.IsPost() && bytes.HasPrefix(fc.URI().PathOriginal(), []byte("/v1/")) {
			d.attend(fc)
			return
		}
		router(fc)
	}
}

// attend answers a request. What it refuses before the body was read closes the connection: the unread body would be taken
// for the next request.
func (d *Daemon) attend(fc *fasthttp.RequestCtx) {
	v := d.arrive(fc)
	defer func() {
		if r := recover(); r != nil { // one request fails, not the process
			d.log.Error("BUG: a request made the daemon panic", "panic", r, "id", v.in.ID, "pool", v.in.Seen.Pool, "stack", string(debug.Stack()))
			if v.begun {
				v.end()
			}
			v.in.Seen.Status = faultInternal.status
			d.metrics.answered(&v.in.Seen)
			fc.SetConnectionClose()
			respond(fc, faultInternal.outbound(openAI))
			d.allowPage(fc)
		}
	}()
	out := v.refuse(fc)
	if out == nil {
		out = v.admit(fc)
	} else {
		v.closeUnread(fc)
	}
	v.answer(fc, out)
}

// arrive begins a visit.
func (d *Daemon) arrive(fc *fasthttp.RequestCtx) *visit {
	v := visits.Get().(*visit)
	v.d, v.arrived = d, time.Now()
	v.conn = listen.From(fc.Conn())
	v.in = Inbound{Header: v.in.Header[:0], Method: method(fc), Path: pathOf(fc), Query: string(fc.URI().QueryString()),
		Remote: v.remote(fc), Host: string(fc.Host())}
	v.in.TLS = v.conn != nil && v.conn.IsTLS()
	return v
}

// refuseUnread answers a request that comes to no visit of its own: fasthttp or guard refuse it. It gets an id, a line in the
// access log and a count like every other. What fasthttp could not parse it calls GET /: nobody asked for that, so the line
// names no method and no path.
func (d *Daemon) refuseUnread(fc *fasthttp.RequestCtx, f fault, parsed bool) {
	v := d.arrive(fc)
	if !parsed {
		v.in.Method, v.in.Path = "", ""
	}
	v.in.ID = gate.RequestID("")
	v.in.Seen.End = f.code
	v.answer(fc, f.outbound(openAI))
}

// method is without an allocation for the usual ones.
func method(fc *fasthttp.RequestCtx) string {
	switch {
	case fc.IsPost():
		return "POST"
	case fc.IsGet():
		return "GET"
	}
	return string(fc.Method())
}

// pathOf is without an allocation for the usual ones.
func pathOf(fc *fasthttp.RequestCtx) string {
	switch b := fc.URI().PathOriginal(); string(b) {
	case "/v1/chat/completions":
		return "/v1/chat/completions"
	case "/v1/completions":
		return "/v1/completions"
	default:
		return string(b)
	}
}

// remote is the client's address.
func (v *visit) remote(fc *fasthttp.RequestCtx) string {
	if v.conn != nil {
		return v.conn.Remote()
	}
	return fc.RemoteIP().String()
}

// refuse answers what needs no body: bad framing, preflights, unknown paths and keys, and overload.
func (v *visit) refuse(fc *fasthttp.RequestCtx) *Outbound {
	d, in := v.d, &v.in
	var sound bool
	if in.Header, sound = readHeader(in.Header, fc.Request.Header.RawHeaders(), fc.Request.Header.IsHTTP11()); !sound || !plainTarget(fc) {
		in.ID = gate.RequestID("")
		return v.turnAway(faultFraming, openAI)
	}
	in.ID = gate.RequestID(in.get("X-Request-Id"))
	front := d.state.Load().front
	if status, header, text, ok := front.cors.Preflight(in.Method, in.get); ok {
		return preflight(status, header, text)
	}
	path, known := endpoint(in.Path)
	if !known {
		return v.turnAway(faultUnknownURL, openAI)
	}
	in.Path = path
	shape := shapeOf(path)
	caller, ok := front.keys.Check(in.get("Authorization"), in.get("X-Api-Key"))
	if !ok {
		return v.turnAway(faultKey, shape)
	}
	in.Caller = caller
	if f, ok := turned(&fc.Request.Header); ok {
		return v.turnAway(f, shape)
	}
	return nil
}

// turnAway answers a request of which nothing but the header, or part of the body, has been read.
func (v *visit) turnAway(f fault, s shape) *Outbound {
	if f.code == faultOverload.code {
		v.d.metrics.shed.WithLabelValues("", f.code).Inc()
	}
	v.in.Seen.End = f.code
	return f.outbound(s)
}

// turnedAway is a field that no client can send, with the status of what glance turns away: its name begins with a blank.
const turnedAway = " turned-away"

// turnedFaults are what glance turns away for, by that status.
var turnedFaults = map[string]fault{"401": faultKey, "413": faultTooLarge, "429": faultOverload}

// turned tells whether glance has turned the request away.
func turned(h *fasthttp.RequestHeader) (f fault, ok bool) {
	if said := h.Peek(turnedAway); len(said) > 0 {
		f, ok = turnedFaults[string(said)]
	}
	return f, ok
}

// early is called by fasthttp between header and body of every request. It waits for the first byte of a body before it calls
// the handler, and a client may wait for an answer before it sends one: a request that is turned away is told to have none.
func (d *Daemon) early(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if said := d.glance(h); said != "" {
		h.Set(turnedAway, said)
		if h.ContentLength() > 0 {
			h.SetContentLength(0)
			h.SetConnectionClose()
		}
	}
	return fasthttp.RequestConfig{}
}

// glance tells by its header alone whether a request is turned away: a key of turnedFaults, or "".
func (d *Daemon) glance(h *fasthttp.RequestHeader) string {
	front := d.state.Load().front
	if front.keys != nil && h.ContentLength() != 0 {
		if _, ok := front.keys.Check(anyCase(h, "Authorization"), anyCase(h, "X-Api-Key")); !ok {
			return "401"
		}
	}
	switch {
	case h.ContentLength() > front.maxBody:
		return "413"
	case d.inFlight.Load() >= int64(front.maxInFlight) || d.saturated():
		return "429"
	}
	return ""
}

// anyCase is a field by its name however it was written; Peek knows one spelling.
func anyCase(h *fasthttp.RequestHeader, name string) string {
	for k, v := range h.All() {
		if strings.EqualFold(string(k), name) {
			return string(v)
		}
	}
	return ""
}

// expect answers a client that asks before it sends its body: 100, or what would be the answer anyway.
func (d *Daemon) expect(fc *fasthttp.RequestCtx) int {
	if _, ok := turned(&fc.Request.Header); !ok {
		return fasthttp.StatusContinue
	}
	v := d.arrive(fc)
	out := v.refuse(fc)
	status := out.Status
	v.answer(fc, out)
	return status
}

func preflight(status int, header [][2]string, text string) *Outbound {
	out := &Outbound{Status: status, Body: []byte(text)}
	for _, h := range header {
		out.set(h[0], h[1])
	}
	return out
}

// admit takes the body in and hands the request to the exchange.
func (v *visit) admit(fc *fasthttp.RequestCtx) *Outbound {
	d := v.d
	d.inFlight.Add(1)
	front := d.state.Load().front
	v.begun = true
	v.life = new(life)
	d.lives.begin(v.life)
	if f := v.takeBody(fc, front); f.status != 0 {
		v.closeUnread(fc)
		if f == faultSlowBody && v.conn != nil {
			v.conn.LingerBriefly()
		}
		v.end()
		return v.turnAway(f, shapeOf(v.in.Path))
	}
	if v.conn != nil {
		v.watch = v.conn.Watch(v)
	}
	out := d.Serve(v.life, &v.in)
	if !v.body.done() {
		v.closeUnread(fc)
	}
	if out.Stream == nil {
		v.end()
	}
	return out
}

// Gone is called by the listener when the client closes its side before the answer has ended.
func (v *visit) Gone() { v.life.end(errClientGone) }

// end counts the request down and forgets the client. It may be called more than once.
func (v *visit) end() {
	v.once.Do(func() {
		if v.conn != nil && v.watch != 0 {
			v.conn.Unwatch(v.watch)
		}
		v.life.leave()
		if v.d.draining.Load() {
			v.d.endedLate.Add(1)
		}
		v.d.inFlight.Add(-1)
	})
}

// closeUnread makes the connection end with the answer, politely: a close with bytes unread would be a reset, which can
// destroy the answer on its way.
func (v *visit) closeUnread(fc *fasthttp.RequestCtx) {
	if v.body.done() && fc.RequestBodyStream() == nil && !fc.Request.Header.ConnectionClose() {
		return
	}
	fc.SetConnectionClose()
	if v.conn != nil {
		v.conn.Linger()
	}
}

// answer puts out on its way.
func (v *visit) answer(fc *fasthttp.RequestCtx, out *Outbound) {
	if v.d.draining.Load() {
		fc.SetConnectionClose()
	}
	header := v.extra[:0]
	if v.in.ID != "" {
		header = append(header, upstream.Field{Name: "X-Request-Id", Value: v.in.ID})
	}
	if shapeOf(v.in.Path) == aws {
		header = append(header, upstream.Field{Name: headerAWSRequest, Value: v.in.ID})
	}
	header = v.d.corsFields(header, out, v.in.get("Origin"))
	v.in.Seen.Status = out.Status
	if out.Stream != nil {
		v.handOver(fc, out, header)
		return
	}
	for _, f := range header {
		fc.Response.Header.Add(f.Name, f.Value)
	}
	v.sent = int64(len(out.Body))
	respond(fc, out)
	v.release()
}

// release gives the visit's memory back. Nothing may use the request after it.
func (v *visit) release() {
	v.d.metrics.answered(&v.in.Seen)
	v.d.access.log(v)
	v.freeBody()
	*v = visit{in: Inbound{Header: v.in.Header[:0]}}
	visits.Put(v)
}

func respond(fc *fasthttp.RequestCtx, out *Outbound) {
	response := &fc.Response
	response.SetStatusCode(out.Status)
	for _, f := range out.Header {
		if len(f.Name) == 12 && strings.EqualFold(f.Name, "content-type") {
			response.Header.SetContentType(f.Value)
			continue
		}
		response.Header.Add(f.Name, f.Value)
	}
	response.SetBodyRaw(out.Body)
}
