package front

import (
	"errors"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// expect answers a client that waits for 100 before it sends its body: with 100, or with the refusal that it would get.
// Pages and unknown paths are answered after the 100.
func (h *handler) expect(fc *fasthttp.RequestCtx) int {
	q := newRequest(h, fc)
	if q.in.Endpoint.Role != message.Nobody {
		if out := q.refuse(); out != nil {
			q.answer(out)
			return out.Status
		}
	}
	q.forget()
	hideLength(&fc.Request.Header)
	return fasthttp.StatusContinue
}

// clientError answers the errors by which fiber and fasthttp refuse requests. The answer repeats nothing of the
// request.
func (h *handler) clientError(c *fiber.Ctx, err error) error {
	fc := c.Context()
	f, code := message.FaultFraming, 0
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
		f = message.FaultUnknownURL
	case fiber.StatusRequestHeaderFieldsTooLarge:
		f = message.FaultHeaders
	case fiber.StatusRequestTimeout:
		f = message.FaultSlowBody
	case fiber.StatusBadGateway: // fiber's status for a connection that broke: no client reads an answer
		respond(fc, nil, f.Outbound(message.OpenAI))
		return nil
	}
	h.refuseUnread(fc, f, len(fc.Request.Header.RawHeaders()) > 0)
	return nil
}

// refuseUnread answers a request that fasthttp refuses. It gets an id, a line in the access log and a count like
// every other. fasthttp reports GET / for a request that it could not parse. The client did not ask for that, so the
// line has no method and no path.
func (h *handler) refuseUnread(fc *fasthttp.RequestCtx, f message.Fault, parsed bool) {
	q := newRequest(h, fc)
	if !parsed {
		q.in.Method = ""
		q.in.Path = ""
	}
	q.in.ID = gate.RequestID("")
	q.in.Seen.End = f.Code
	q.answer(f.Outbound(message.OpenAI))
}
