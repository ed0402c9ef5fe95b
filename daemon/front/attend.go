package front

import (
	"bytes"
	"runtime/debug"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/listen"
)

// handle is fiber's handler for everything but /health and /ready.
func (r *reception) handle(c *fiber.Ctx) error {
	c.Context().SetUserValue(attended, true)
	r.attend(c.Context())
	return nil
}

// bypass attends the requests that are nearly all of them without fiber, whose context and router cost each 2 us.
func (r *reception) bypass(router fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fc *fasthttp.RequestCtx) {
		if fc.IsPost() && bytes.HasPrefix(fc.URI().PathOriginal(), []byte("/v1/")) {
			r.attend(fc)
			return
		}
		router(fc)
	}
}

// attend answers a request. A request that it refuses before the body was read closes its connection: the unread body
// would be read as the next request.
func (r *reception) attend(fc *fasthttp.RequestCtx) {
	v := r.arrive(fc)
	defer func() {
		if p := recover(); p != nil { // one request fails, not the process
			r.failed(v, fc, p)
		}
	}()
	out := v.refuse(fc)
	if out == nil {
		out = v.admit(fc)
	} else {
		v.closeUnread(fc)
	}
	if out.Stream != nil {
		startRelay(v, fc, out)
		return
	}
	v.answer(fc, out)
}

// failed answers a request that made the daemon panic.
func (r *reception) failed(v *visit, fc *fasthttp.RequestCtx, p any) {
	r.log.Error("BUG: a request made the daemon panic", "panic", p, "id", v.in.ID, "pool", v.in.Seen.Pool,
		"stack", string(debug.Stack()))
	v.end()
	v.in.Seen.Status = exchange.FaultInternal.Status
	r.meter.Answered(&v.in.Seen)
	fc.SetConnectionClose()
	respond(fc, exchange.FaultInternal.Outbound(exchange.OpenAI))
	r.allowPage(fc)
}

// awaitRequest waits for the next request, and serves the connection on. fasthttp counts a connection without one as
// busy in its first 5 s, and a drain would wait for it. It also holds 25 KB for one that waits longer.
func (r *reception) awaitRequest(conn *listen.Conn, idle time.Duration) {
	first := make([]byte, 1)
	n := 0
	if conn.SetReadDeadline(time.Now().Add(r.traffic.park(conn, idle))) == nil {
		n, _ = conn.Read(first)
	}
	r.traffic.unpark(conn)
	if n == 0 {
		conn.Close()
		return
	}
	r.serveOn(conn, first)
}

// serveOn serves the requests on a connection, on which ahead has been read of the next one already.
func (r *reception) serveOn(conn *listen.Conn, ahead []byte) {
	conn.Unread(ahead)
	_ = r.serveConn(conn.Lease()) // what ends it is the client's or logged there
}
