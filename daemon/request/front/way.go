package front

import (
	"io"
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/transport/listen"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// way reads a visit's request and writes its answer.
type way interface {
	// conn returns the connection, nil for one that room listen has not accepted.
	conn() *listen.Conn
	// line sets the fields that come from request line and connection: Method, Path, Query, Host and Remote.
	line(in *exchange.Inbound)
	// fields appends the header's fields to into. It returns false if readers may differ on what the request is.
	fields(into []upstream.Field) (fields []upstream.Field, sound bool)
	// turnedAway returns the fault for which a sentry has turned the request away.
	turnedAway() (f exchange.Fault, ok bool)
	// body returns the request's body: whole, or a reader of it, with its length, -1 = not known.
	body() (whole []byte, r io.Reader, length int64)
	// unread reports whether bytes of a body that nobody has asked for may follow.
	unread() bool
	// end makes the answer the last one on the connection.
	end()
	// answer gives the answer in one piece, with fields beside its own. It is written once the visit is over, which is
	// at that time.
	answer(fields []upstream.Field, out *exchange.Outbound, at time.Time)
	// handOver calls begin with the connection, as soon as that is free for an answer in pieces. Nothing else of the way
	// may be called any more.
	handOver(begin func(handed))
}

// handed is a connection with a request that waits for its answer.
type handed struct {
	conn   *listen.Conn
	http11 bool
	ahead  []byte // what was read behind the request
	keep   bool   // it may serve another request afterwards
}

// served is the way of a request that fasthttp has read.
type served fasthttp.RequestCtx

func (s *served) context() *fasthttp.RequestCtx { return (*fasthttp.RequestCtx)(s) }

func (s *served) conn() *listen.Conn { return listen.From(s.context().Conn()) }

func (s *served) line(in *exchange.Inbound) {
	fc := s.context()
	in.Method = method(fc)
	in.Path = pathOf(fc)
	in.Query = string(fc.URI().QueryString())
	in.Host = string(fc.Host())
	if conn := s.conn(); conn != nil {
		in.Remote = conn.Remote()
	} else {
		in.Remote = fc.RemoteIP().String()
	}
}

// method returns the method, without an allocation for the usual ones.
func method(fc *fasthttp.RequestCtx) string {
	switch {
	case fc.IsPost():
		return "POST"
	case fc.IsGet():
		return "GET"
	}
	return string(fc.Method())
}

// pathOf returns the path, without an allocation for the usual ones.
func pathOf(fc *fasthttp.RequestCtx) string { return pathText(fc.URI().PathOriginal()) }

// pathText returns string(b), without an allocation for the usual paths.
func pathText(b []byte) string {
	switch string(b) {
	case "/v1/chat/completions":
		return "/v1/chat/completions"
	case "/v1/completions":
		return "/v1/completions"
	}
	return string(b)
}

func (s *served) fields(into []upstream.Field) ([]upstream.Field, bool) {
	fc := s.context()
	h := &fc.Request.Header
	fields, sound := readHeader(into, h.RawHeaders(), h.IsHTTP11())
	return fields, sound && plainTarget(fc)
}

func (s *served) turnedAway() (exchange.Fault, bool) { return earlyFault(&s.context().Request.Header) }

func (s *served) body() ([]byte, io.Reader, int64) {
	fc := s.context()
	r := fc.RequestBodyStream()
	if r == nil {
		return fc.Request.Body(), nil, 0
	}
	return nil, r, int64(max(-1, fc.Request.Header.ContentLength()))
}

// unread is also true for a request whose body a sentry has hidden.
func (s *served) unread() bool {
	fc := s.context()
	return fc.RequestBodyStream() != nil || fc.Request.Header.ConnectionClose()
}

func (s *served) end() { s.context().SetConnectionClose() }

func (s *served) answer(fields []upstream.Field, out *exchange.Outbound, _ time.Time) {
	fc := s.context()
	for _, f := range fields {
		fc.Response.Header.Set(f.Name, f.Value)
	}
	respond(fc, out)
}

// handOver takes the connection over from fasthttp once its handler has returned.
func (s *served) handOver(begin func(handed)) {
	fc := s.context()
	h := handed{conn: listen.TakeOver(fc.Conn()), http11: fc.Request.Header.IsHTTP11(),
		keep: !fc.Request.Header.ConnectionClose() && !fc.Response.ConnectionClose()}
	fc.HijackSetNoResponse(true)
	fc.Hijack(func(hijacked net.Conn) {
		if h.keep {
			h.ahead = readAhead(h.conn, hijacked)
		}
		begin(h) // when this function returns, fasthttp takes its buffers back
	})
}

// readAhead returns what fasthttp has read behind the request: with a deadline in the past nothing more comes.
func readAhead(conn *listen.Conn, hijacked net.Conn) (ahead []byte) {
	_ = conn.SetReadDeadline(time.Unix(1, 0))
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	var b [512]byte
	for {
		n, err := hijacked.Read(b[:])
		ahead = append(ahead, b[:n]...)
		if n == 0 || err != nil {
			return ahead
		}
	}
}

// respond gives an answer in one piece to fasthttp.
func respond(fc *fasthttp.RequestCtx, out *exchange.Outbound) {
	response := &fc.Response
	response.SetStatusCode(out.Status)
	closes := response.ConnectionClose()
	for _, f := range out.Header {
		if len(f.Name) == 12 && strings.EqualFold(f.Name, "content-type") {
			response.Header.SetContentType(f.Value)
			continue
		}
		response.Header.Add(f.Name, f.Value)
	}
	if closes { // a Connection field among those has undone it
		response.SetConnectionClose()
	}
	response.SetBodyRaw(out.Body)
}
