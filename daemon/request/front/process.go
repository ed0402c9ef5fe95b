package front

import (
	"bytes"
	"runtime/debug"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// pending is the user value under which fiber's handlers find the request.
const pending = "request"

// wrap returns fasthttp's handler. Once the server is to be left, every answer ends its connection. Streams decide that
// for themselves, see ownFields.
func (h *handler) wrap(router fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fc *fasthttp.RequestCtx) {
		h.route(fc, router)
		if h.traffic.leaving.Load() && !fc.Hijacked() {
			fc.SetConnectionClose()
		}
		if conn := listen.From(fc.Conn()); conn != nil && !fc.Hijacked() {
			conn.NextRequest()
			conn.Owe(len(fc.Response.Body()))
		}
	}
}

// route answers a request, through fiber if it may be one for a page. Nearly all requests bypass fiber, whose context
// and router cost 2 us each. It also has answers of its own for methods that it does not know.
func (h *handler) route(fc *fasthttp.RequestCtx, router fasthttp.RequestHandler) {
	q := newRequest(h, fc)
	if fc.IsPost() && bytes.HasPrefix(fc.URI().PathOriginal(), []byte("/v1/")) || q.malformed().Status != 0 {
		h.process(q)
		return
	}
	fc.SetUserValue(pending, q)
	router(fc)
	if fc.UserValue(pending) != nil {
		q.finishPage()
	}
}

// handle is fiber's handler for everything but the pages.
func (h *handler) handle(c *fiber.Ctx) error {
	fc := c.Context()
	q := fc.UserValue(pending).(*request)
	fc.RemoveUserValue(pending)
	h.process(q)
	return nil
}

// process answers a request. A request that it refuses before the body was read closes its connection: the unread body
// would be read as the next request.
func (h *handler) process(q *request) {
	fc := q.fc
	defer func() {
		if p := recover(); p != nil { // one request fails, not the process
			h.failed(q, fc, p)
		}
	}()
	out := q.refuse()
	if out == nil {
		out = q.admit()
	} else {
		q.closeUnread()
	}
	if q.root > 0 {
		atRoot(out.Header, q.epoch.RootPaths[q.root-1])
	}
	switch {
	case out.Status == fasthttp.StatusSwitchingProtocols:
		startTunnel(q, out)
		return
	case out.Stream != nil:
		startRelay(q, out)
		return
	}
	q.answer(out)
}

// failed answers a request that made the daemon panic.
func (h *handler) failed(q *request, fc *fasthttp.RequestCtx, p any) {
	h.log.Error("BUG: a request made the daemon panic", "panic", p, "id", q.in.ID, "pool", q.in.Seen.Pool,
		"stack", string(debug.Stack()))
	q.in.Seen.Comments = q.in.Comments.End()
	q.end()
	q.in.DropKept()
	if q.body.buffer != nil {
		q.body.buffer.drop() // its memory may be in use still
	}
	out := message.FaultInternal.Outbound(message.OpenAI)
	q.in.Seen.Status, q.sent = int32(out.Status), int64(len(out.Body))
	q.recordAfterPanic()
	if q.in.Seen.Comments > 0 { // the client has a head already
		q.conn.Abort()
	}
	fc.SetConnectionClose()
	respond(fc, corsFields(h.backend.Epoch().CORS, nil, out, q.in.Get("Origin")), out)
}
