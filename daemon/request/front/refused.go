package front

import (
	"errors"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// attended marks requests that attend has answered: the visit takes care of their body.
const attended = "attended"

// unfit returns the fault of a request that is refused by its head alone. fiber would answer a method that it does not
// know in a form of its own, without a line in the access log or a count.
func unfit(fc *fasthttp.RequestCtx) (f exchange.Fault, is bool) {
	h := &fc.Request.Header
	_, sound := readHeader(nil, h.RawHeaders(), h.IsHTTP11())
	switch {
	case !sound || !plainTarget(fc):
		return exchange.FaultFraming, true
	case !slices.Contains(fiber.DefaultMethods, string(h.Method())):
		return exchange.FaultRequest, true
	}
	return exchange.Fault{}, false
}

// guard keeps the framing of requests that fiber answers without reading their body: an unread body would be read as
// the next request.
func (r *reception) guard(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fc *fasthttp.RequestCtx) {
		if f, is := unfit(fc); is {
			fc.SetConnectionClose()
			r.refuseUnread((*served)(fc), f, true)
			r.allowPage(fc)
			return
		}
		next(fc)
		if fc.UserValue(attended) != nil {
			return
		}
		r.allowPage(fc)
		if fc.RequestBodyStream() != nil {
			fc.SetConnectionClose()
		}
	}
}

// expect answers a client that waits for 100 before it sends its body: with 100, or with the refusal that it would get.
func (r *reception) expect(fc *fasthttp.RequestCtx) int {
	if _, ok := earlyFault(&fc.Request.Header); !ok {
		return fasthttp.StatusContinue
	}
	v := arrive(r, (*served)(fc))
	out := v.refuse()
	status := out.Status
	v.answer(out)
	return status
}

// clientError answers the errors by which fiber and fasthttp refuse requests. The answer repeats nothing of the
// request.
func (r *reception) clientError(c *fiber.Ctx, err error) error {
	fc := c.Context()
	f, code := exchange.FaultFraming, 0
	if fe := (*fiber.Error)(nil); errors.As(err, &fe) {
		code = fe.Code
	}
	if conn := listen.From(fc.Conn()); conn != nil {
		conn.Linger() // fasthttp closes after this answer
		if code == fiber.StatusRequestTimeout {
			conn.LingerBriefly()
		}
		if conn.EndedBare() {
			f.Message = listen.BareLF
		}
	}
	switch code {
	case fiber.StatusNotFound, fiber.StatusMethodNotAllowed:
		f = exchange.FaultUnknownURL
	case fiber.StatusRequestHeaderFieldsTooLarge:
		f = exchange.FaultHeaders
	case fiber.StatusRequestTimeout:
		f = exchange.FaultSlowBody
	case fiber.StatusBadGateway: // fiber's status for a connection that broke: nobody reads an answer
		respond(fc, f.Outbound(exchange.OpenAI))
		return nil
	}
	r.refuseUnread((*served)(fc), f, len(fc.Request.Header.RawHeaders()) > 0)
	r.allowPage(fc)
	return nil
}

// refuseUnread answers a request that fasthttp or guard refuses before it is attended. It gets an id, a line in the
// access log and a count like every other. A request that could not be parsed is GET / to fasthttp: nobody asked for
// that, so the line names no method and no path.
func (r *reception) refuseUnread(w way, f exchange.Fault, parsed bool) {
	v := arrive(r, w)
	if !parsed {
		v.in.Method = ""
		v.in.Path = ""
	}
	v.in.ID = gate.RequestID("")
	v.in.Seen.End = f.Code
	v.answer(f.Outbound(exchange.OpenAI))
}

// allowPage adds to an answer that no visit made the fields that a browser needs.
func (r *reception) allowPage(fc *fasthttp.RequestCtx) {
	for _, h := range r.backend.Epoch().CORS.Headers(anyCase(&fc.Request.Header, "Origin")) {
		fc.Response.Header.Set(h[0], h[1])
	}
}
