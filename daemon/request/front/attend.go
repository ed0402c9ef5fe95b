package front

import (
	"bytes"
	"runtime/debug"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/request/exchange"
)

// handle is fiber's handler for everything but /health and /ready.
func (r *reception) handle(c *fiber.Ctx) error {
	c.Context().SetUserValue(attended, true)
	r.attend((*served)(c.Context()))
	return nil
}

// bypass serves nearly all requests without fiber, whose context and router cost 2 us each.
func (r *reception) bypass(router fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fc *fasthttp.RequestCtx) {
		if fc.IsPost() && bytes.HasPrefix(fc.URI().PathOriginal(), []byte("/v1/")) {
			r.attend((*served)(fc))
			return
		}
		router(fc)
	}
}

// attend answers a request. A request that it refuses before the body was read closes its connection: the unread body
// would be read as the next request.
func (r *reception) attend(w way) {
	v := arrive(r, w)
	defer func() {
		if p := recover(); p != nil { // one request fails, not the process
			r.failed(v, w, p)
		}
	}()
	out := v.refuse()
	if out == nil {
		out = v.admit()
	} else {
		v.closeUnread()
	}
	if out.Stream != nil {
		startRelay(v, out)
		return
	}
	v.answer(out)
}

// failed answers a request that made the daemon panic.
func (r *reception) failed(v *visit, w way, p any) {
	r.log.Error("BUG: a request made the daemon panic", "panic", p, "id", v.in.ID, "pool", v.in.Seen.Pool,
		"stack", string(debug.Stack()))
	v.end()
	v.in.DropKept()
	out := exchange.FaultInternal.Outbound(exchange.OpenAI)
	v.in.Seen.Status, v.sent = out.Status, int64(len(out.Body))
	v.recordAfterPanic()
	w.end()
	w.answer(corsFields(r.backend.Epoch().CORS, nil, out, v.in.Get("Origin")), out, time.Now())
}
