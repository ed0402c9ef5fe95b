package front

import (
	"net"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/listen"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// takenOver is a connection taken over from fasthttp, with a request that waits for its answer.
type takenOver struct {
	conn   *listen.Conn
	http11 bool
	ahead  []byte // what was read behind the request
	keep   bool   // it may serve another request afterwards
}

// takeOver calls begin with the connection once fasthttp's handler has returned.
func takeOver(fc *fasthttp.RequestCtx, begin func(takenOver)) {
	t := takenOver{conn: listen.TakeOver(fc.Conn()), http11: fc.Request.Header.IsHTTP11(),
		keep: !fc.Request.Header.ConnectionClose() && !fc.Response.ConnectionClose()}
	fc.HijackSetNoResponse(true)
	socket := fc.Response.StatusCode() == fasthttp.StatusSwitchingProtocols // frames may follow
	fc.Hijack(func(hijacked net.Conn) {
		if t.keep || socket {
			t.ahead = readAhead(t.conn, hijacked)
		}
		begin(t) // when this function returns, fasthttp takes its buffers back
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

// respond gives an answer in one piece to fasthttp, with fields beside its own.
func respond(fc *fasthttp.RequestCtx, fields []upstream.Field, out *message.Outbound) {
	response := &fc.Response
	for _, f := range fields {
		response.Header.Set(f.Name, f.Value)
	}
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

// cutRoot removes the first of these prefixes that the request's path has, and returns its number, from 1; 0 = it has
// none.
func cutRoot(fc *fasthttp.RequestCtx, roots []string) int8 {
	for i, root := range roots {
		if rest, is := message.Below(string(fc.URI().PathOriginal()), root); is {
			fc.URI().SetPath(rest)
			return int8(i + 1)
		}
	}
	return 0
}

// atRoot puts the removed prefix back before the path of a Location.
func atRoot(header []upstream.Field, root string) {
	for i := range header {
		if f := &header[i]; strings.EqualFold(f.Name, "location") && strings.HasPrefix(f.Value, "/") {
			f.Value = root + f.Value
		}
	}
}

// pathOf returns the path, without an allocation for the usual ones.
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
