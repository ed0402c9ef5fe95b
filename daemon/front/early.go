package front

import (
	"bytes"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/exchange"
)

// handle is fiber's handler for everything but /health and /ready.
func (s *Server) handle(c *fiber.Ctx) error {
	c.Context().SetUserValue(attended, true)
	s.attend(c.Context())
	return nil
}

// past takes the requests that are nearly all of them past fiber, whose context and router cost each 2 us.
func (s *Server) past(router fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fc *fasthttp.RequestCtx) {
		if fc.IsPost() && bytes.HasPrefix(fc.URI().PathOriginal(), []byte("/v1/")) {
			s.attend(fc)
			return
		}
		router(fc)
	}
}

// turnedAway is a pseudo header. early sets it because fasthttp gives it nothing but the header, and the handler reads it. Its
// leading blank keeps clients from sending it.
const turnedAway = " turned-away"

// turnedFaults are what glance turns away for, by that status.
var turnedFaults = map[string]exchange.Fault{"401": exchange.FaultKey, "413": exchange.FaultTooLarge, "429": exchange.FaultOverload}

// turned tells whether glance has turned the request away.
func turned(h *fasthttp.RequestHeader) (f exchange.Fault, ok bool) {
	if said := h.Peek(turnedAway); len(said) > 0 {
		f, ok = turnedFaults[string(said)]
	}
	return f, ok
}

// early is called by fasthttp between header and body of every request. It waits for the first byte of a body before it calls
// the handler, and a client may wait for an answer before it sends one: a request that is turned away is told to have none.
func (s *Server) early(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if said := s.glance(h); said != "" {
		h.Set(turnedAway, said)
		if h.ContentLength() > 0 {
			h.SetContentLength(0)
			h.SetConnectionClose()
		}
	}
	return fasthttp.RequestConfig{}
}

// glance tells by its header alone whether a request is turned away: a key of turnedFaults, or "".
func (s *Server) glance(h *fasthttp.RequestHeader) string {
	epoch := s.epoch()
	if epoch.Keys != nil && h.ContentLength() != 0 {
		if _, ok := epoch.Keys.Check(anyCase(h, "Authorization"), anyCase(h, "X-Api-Key")); !ok {
			return "401"
		}
	}
	switch {
	case h.ContentLength() > epoch.MaxBody:
		return "413"
	case s.inFlight.Load() >= int64(epoch.MaxInFlight) || epoch.Saturated():
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
func (s *Server) expect(fc *fasthttp.RequestCtx) int {
	if _, ok := turned(&fc.Request.Header); !ok {
		return fasthttp.StatusContinue
	}
	v := s.arrive(fc)
	out := v.refuse(fc)
	status := out.Status
	v.answer(fc, out)
	return status
}
