package daemon

import (
	"context"
	"errors"
	"io"
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
	cancel  context.CancelCauseFunc
	watch   uint64
	raw     []byte // pooled with the visit: the body's first part
	once    sync.Once
	arrived time.Time
	sent    int64 // bytes of the answer's body
}

var visits = sync.Pool{New: func() any { return new(visit) }}

// serve is fiber's handler for everything but /health and /ready. What it refuses before the body was read closes the
// connection: the unread body would be taken for the next request.
func (d *Daemon) serve(c *fiber.Ctx) (err error) {
	v := visits.Get().(*visit)
	defer func() {
		if r := recover(); r != nil { // one request fails, not the process
			d.log.Error("BUG: a request made the daemon panic", "panic", r, "stack", string(debug.Stack()))
			if v.cancel != nil {
				v.end()
			}
			c.Context().SetConnectionClose()
			err = respond(c, faultInternal.outbound(openAI))
		}
	}()
	fc := c.Context()
	v.d, v.arrived = d, time.Now()
	v.conn = listen.From(fc.Conn())
	v.in = Inbound{Header: v.in.Header[:0], Method: method(fc), Path: string(fc.URI().PathOriginal()), Query: string(fc.URI().QueryString()),
		Remote: fc.RemoteIP().String(), Host: string(fc.Host())}
	v.in.TLS = v.conn != nil && v.conn.IsTLS()
	out := v.refuse(fc)
	if out == nil {
		out = v.admit(fc)
	} else {
		v.closeUnread(fc)
	}
	return v.answer(c, out)
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

// refuse answers what needs no body: bad framing, preflights, unknown paths and keys, and overload.
func (v *visit) refuse(fc *fasthttp.RequestCtx) *Outbound {
	d, in := v.d, &v.in
	if !v.readHeader(fc.Request.Header.RawHeaders()) {
		return faultFraming.outbound(openAI)
	}
	in.ID = gate.RequestID(in.get("X-Request-Id"))
	front := d.state.Load().front
	if status, header, text, ok := front.cors.Preflight(in.Method, in.get); ok {
		return preflight(status, header, text)
	}
	path, known := endpoint(in.Path)
	if !known {
		return faultUnknownURL.outbound(openAI)
	}
	in.Path = path
	shape := shapeOf(path)
	caller, ok := front.keys.Check(in.get("Authorization"), in.get("X-Api-Key"))
	if !ok {
		return d.turnAway(faultKey, shape)
	}
	in.Caller = caller
	if fc.Request.Header.ContentLength() > front.maxBody {
		return d.turnAway(faultTooLarge, shape)
	}
	if d.inFlight.Load() >= int64(front.maxInFlight) || d.saturated() {
		return d.turnAway(faultOverload, shape)
	}
	return nil
}

func preflight(status int, header [][2]string, text string) *Outbound {
	out := &Outbound{Status: status, Body: []byte(text)}
	for _, h := range header {
		out.set(h[0], h[1])
	}
	return out
}

// readHeader cuts the header block, as it came, into fields of one string. It reports whether the framing is beyond doubt: a
// request with both a length and a transfer encoding means different things to different readers.
func (v *visit) readHeader(raw []byte) bool {
	block := string(raw)
	length, encoding := false, false
	for len(block) > 0 {
		var line string
		line, block, _ = strings.Cut(block, "\n")
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\r"), ":")
		if !ok {
			continue // the empty line at the end
		}
		value = strings.Trim(value, " \t")
		switch len(name) {
		case len("Content-Length"):
			length = length || strings.EqualFold(name, "Content-Length")
		case len("Transfer-Encoding"):
			encoding = encoding || strings.EqualFold(name, "Transfer-Encoding")
		}
		v.in.Header = append(v.in.Header, upstream.Field{Name: name, Value: value})
	}
	return !(length && encoding)
}

// admit takes the body in and hands the request to the exchange.
func (v *visit) admit(fc *fasthttp.RequestCtx) *Outbound {
	d := v.d
	d.inFlight.Add(1)
	front := d.state.Load().front
	ctx, cancel := context.WithCancelCause(d.life)
	v.cancel = cancel
	if f := v.takeBody(fc, front); f.status != 0 {
		v.closeUnread(fc)
		v.end()
		return d.turnAway(f, shapeOf(v.in.Path))
	}
	if v.conn != nil {
		v.watch = v.conn.Watch(v)
	}
	out := d.Serve(ctx, &v.in)
	if !v.body.done() {
		v.closeUnread(fc)
	}
	if out.Stream != nil && out.Length < 0 && !fc.Request.Header.IsHTTP11() {
		out = gather(out)
	}
	if out.Stream == nil {
		v.end()
	}
	return out
}

// maxGathered bounds an answer of unknown length to an HTTP/1.0 client.
const maxGathered = 16 << 20

// gather reads an answer whole: HTTP/1.0 has no chunks, and an end told by the close alone could not be told from a break.
func gather(out *Outbound) *Outbound {
	defer out.Stream.Close()
	b, err := io.ReadAll(io.LimitReader(out.Stream, maxGathered+1))
	if err != nil || len(b) > maxGathered {
		return faultBroken.outbound(openAI)
	}
	out.Body, out.Stream = b, nil
	return out
}

// Gone is called by the listener when the client closes its side before the answer has ended.
func (v *visit) Gone() { v.cancel(errClientGone) }

// end counts the request down and forgets the client. It may be called more than once.
func (v *visit) end() {
	v.once.Do(func() {
		if v.conn != nil && v.watch != 0 {
			v.conn.Unwatch(v.watch)
		}
		v.cancel(nil)
		v.d.inFlight.Add(-1)
	})
}

// closeUnread makes the connection end with the answer, politely: a close with bytes unread would be a reset, which can
// destroy the answer on its way.
func (v *visit) closeUnread(fc *fasthttp.RequestCtx) {
	if v.body.done() && fc.RequestBodyStream() == nil {
		return
	}
	fc.SetConnectionClose()
	if v.conn != nil {
		v.conn.Linger()
	}
}

// answer puts out on its way. fasthttp writes and flushes one chunk a Read, and closes the connection without the last chunk if
// Read fails.
func (v *visit) answer(c *fiber.Ctx, out *Outbound) error {
	header := &c.Context().Response.Header
	if v.d.draining.Load() {
		c.Context().SetConnectionClose()
	}
	if v.in.ID != "" {
		header.Add("X-Request-Id", v.in.ID)
	}
	for _, h := range v.d.state.Load().front.cors.Headers(v.in.get("Origin")) {
		header.Add(h[0], h[1])
	}
	v.in.Seen.Status = out.Status
	if out.Stream == nil {
		v.sent = int64(len(out.Body))
		err := respond(c, out)
		v.release()
		return err
	}
	out.Stream = &stream{v: v, ReadCloser: out.Stream}
	return respond(c, out)
}

// stream is an answer's body whose end is the visit's.
type stream struct {
	io.ReadCloser
	v *visit
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.v.sent += int64(n)
	return n, err
}

// Close is called by fasthttp once the answer has been written, or could not be.
func (s *stream) Close() error {
	if s.v == nil {
		return nil
	}
	err := s.ReadCloser.Close()
	s.v.end()
	s.v.release()
	s.v = nil
	return err
}

// release gives the visit's memory back. Nothing may use the request after it.
func (v *visit) release() {
	v.d.access.log(v)
	if cap(v.raw) > keepBody {
		v.raw = nil
	}
	*v = visit{raw: v.raw[:0], in: Inbound{Header: v.in.Header[:0]}}
	visits.Put(v)
}

func respond(c *fiber.Ctx, out *Outbound) error {
	response := c.Response()
	response.SetStatusCode(out.Status)
	for _, f := range out.Header {
		if len(f.Name) == 12 && strings.EqualFold(f.Name, "content-type") {
			response.Header.SetContentType(f.Value)
			continue
		}
		response.Header.Add(f.Name, f.Value)
	}
	if out.Stream == nil {
		response.SetBodyRaw(out.Body)
		return nil
	}
	response.SetBodyStream(out.Stream, int(out.Length))
	return nil
}
