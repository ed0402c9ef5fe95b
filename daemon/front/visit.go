package front

import (
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/listen"
	"github.com/warmpath/warmpath/daemon/upstream"
)

// visit is a client's request on fiber's side, from its header to the last byte of its answer.
type visit struct {
	s       *Server
	epoch   *Epoch // read once: the request is served under no other
	conn    *listen.Conn
	in      exchange.Inbound
	body    intake
	life    *exchange.Life // of begun; never used again, see there
	begun   bool           // it has been counted
	watch   uint64
	raw     *[]byte // pooled: the first part of the body
	once    sync.Once
	arrived time.Time
	sent    int64             // bytes of the answer's body
	extra   [5]upstream.Field // room for what the answer's header gets beside the worker's
}

var visits = sync.Pool{New: func() any { return new(visit) }}

// attend answers a request. What it refuses before the body was read closes the connection: the unread body would be taken
// for the next request.
func (s *Server) attend(fc *fasthttp.RequestCtx) {
	v := s.arrive(fc)
	defer func() {
		if r := recover(); r != nil { // one request fails, not the process
			s.log.Error("BUG: a request made the daemon panic", "panic", r, "id", v.in.ID, "pool", v.in.Seen.Pool, "stack", string(debug.Stack()))
			if v.begun {
				v.end()
			}
			v.in.Seen.Status = exchange.FaultInternal.Status
			s.meter.Answered(&v.in.Seen)
			fc.SetConnectionClose()
			respond(fc, exchange.FaultInternal.Outbound(exchange.OpenAI))
			s.allowPage(fc)
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
func (s *Server) arrive(fc *fasthttp.RequestCtx) *visit {
	v := visits.Get().(*visit)
	v.s, v.arrived, v.epoch = s, time.Now(), s.epoch()
	v.conn = listen.From(fc.Conn())
	v.in = exchange.Inbound{Header: v.in.Header[:0], Method: method(fc), Path: pathOf(fc), Query: string(fc.URI().QueryString()),
		Remote: v.remote(fc), Host: string(fc.Host())}
	v.in.Epoch, v.in.Endpoint = &v.epoch.Epoch, exchange.Classify(v.in.Method, v.in.Path)
	v.in.TLS = v.conn != nil && v.conn.IsTLS()
	return v
}

// refuseUnread answers a request that comes to no visit of its own: fasthttp or guard refuse it. It gets an id, a line in the
// access log and a count like every other. What fasthttp could not parse it calls GET /: nobody asked for that, so the line
// names no method and no path.
func (s *Server) refuseUnread(fc *fasthttp.RequestCtx, f exchange.Fault, parsed bool) {
	v := s.arrive(fc)
	if !parsed {
		v.in.Method, v.in.Path = "", ""
	}
	v.in.ID = gate.RequestID("")
	v.in.Seen.End = f.Code
	v.answer(fc, f.Outbound(exchange.OpenAI))
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
func (v *visit) refuse(fc *fasthttp.RequestCtx) *exchange.Outbound {
	in := &v.in
	var sound bool
	in.Header, sound = readHeader(in.Header, fc.Request.Header.RawHeaders(), fc.Request.Header.IsHTTP11())
	if !sound || !plainTarget(fc) {
		in.ID = gate.RequestID("")
		return v.turnAway(exchange.FaultFraming, exchange.OpenAI)
	}
	in.ID = gate.RequestID(in.Get("X-Request-Id"))
	if status, header, text, ok := v.epoch.CORS.Preflight(in.Method, in.Get); ok {
		return preflight(status, header, text)
	}
	if in.Endpoint.Role == exchange.Nobody {
		return v.turnAway(exchange.FaultUnknownURL, exchange.OpenAI)
	}
	in.Path = in.Endpoint.Path
	caller, ok := v.epoch.Keys.Check(in.Get("Authorization"), in.Get("X-Api-Key"))
	if !ok {
		return v.turnAway(exchange.FaultKey, in.Endpoint.Shape)
	}
	in.Caller = caller
	if f, ok := turned(&fc.Request.Header); ok {
		return v.turnAway(f, in.Endpoint.Shape)
	}
	return nil
}

// turnAway answers a request of which nothing but the header, or part of the body, has been read.
func (v *visit) turnAway(f exchange.Fault, s exchange.Shape) *exchange.Outbound {
	if f.Code == exchange.FaultOverload.Code {
		v.s.meter.Shed("", f.Code)
	}
	v.in.Seen.End = f.Code
	return f.Outbound(s)
}

func preflight(status int, header [][2]string, text string) *exchange.Outbound {
	out := &exchange.Outbound{Status: status, Body: []byte(text)}
	for _, h := range header {
		out.Set(h[0], h[1])
	}
	return out
}

// admit takes the body in and hands the request to the exchange.
func (v *visit) admit(fc *fasthttp.RequestCtx) *exchange.Outbound {
	s := v.s
	s.inFlight.Add(1)
	v.begun = true
	v.life = new(exchange.Life)
	s.lives.Begin(v.life)
	if f := v.takeBody(fc); f.Status != 0 {
		v.closeUnread(fc)
		if f == exchange.FaultSlowBody && v.conn != nil {
			v.conn.LingerBriefly()
		}
		v.end()
		return v.turnAway(f, v.in.Endpoint.Shape)
	}
	if v.conn != nil {
		v.watch = v.conn.Watch(v)
	}
	out := s.serve(v.life, &v.in)
	if !v.body.done() {
		v.closeUnread(fc)
	}
	if out.Stream == nil {
		v.end()
	}
	return out
}

// Gone is called by the listener when the client closes its side before the answer has ended.
func (v *visit) Gone() { v.life.End(exchange.ErrClientGone) }

// end counts the request down and forgets the client. It may be called more than once.
func (v *visit) end() {
	v.once.Do(func() {
		if v.conn != nil && v.watch != 0 {
			v.conn.Unwatch(v.watch)
		}
		v.life.Leave()
		if v.s.draining.Load() {
			v.s.endedLate.Add(1)
		}
		v.s.inFlight.Add(-1)
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
func (v *visit) answer(fc *fasthttp.RequestCtx, out *exchange.Outbound) {
	if v.s.draining.Load() {
		fc.SetConnectionClose()
	}
	header := v.extra[:0]
	if v.in.ID != "" {
		header = append(header, upstream.Field{Name: "X-Request-Id", Value: v.in.ID})
	}
	if v.in.Endpoint.Shape == exchange.AWS {
		header = append(header, upstream.Field{Name: exchange.HeaderAWSRequest, Value: v.in.ID})
	}
	header = corsFields(v.epoch.CORS, header, out, v.in.Get("Origin"))
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
	v.s.meter.Answered(&v.in.Seen)
	v.s.access.log(v)
	v.freeBody()
	*v = visit{in: exchange.Inbound{Header: v.in.Header[:0]}}
	visits.Put(v)
}

func respond(fc *fasthttp.RequestCtx, out *exchange.Outbound) {
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
