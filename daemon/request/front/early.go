package front

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// sentry judges requests by their header alone. fasthttp waits for the first byte of a body before it calls the
// handler, and a client may wait for an answer before it sends one.
type sentry struct {
	backend Backend
	traffic *traffic
}

// turnedAway is a pseudo header. judge sets it because fasthttp gives it nothing but the header, and the handler
// reads it. Its leading blank keeps clients from sending it.
const turnedAway = " turned-away"

// refusal is why a sentry turns a request away, and the value of turnedAway.
type refusal string

const (
	notRefused  refusal = ""
	badKey      refusal = "key"
	bodyTooLong refusal = "body"
	routerFull  refusal = "router" // this router has as many requests as it may have
	workersFull refusal = "workers"
	webSocket   refusal = "websocket"
)

// earlyFaults are the faults that answer the refusals.
var earlyFaults = map[refusal]exchange.Fault{
	badKey:      exchange.FaultKey,
	bodyTooLong: exchange.FaultTooLarge,
	routerFull:  exchange.FaultOverload,
	workersFull: exchange.FaultFull,
	webSocket:   exchange.FaultWebSocket,
}

// judge is called by fasthttp between header and body of every request. It marks a request that it turns away, and
// removes its body's length, so that fasthttp calls the handler without a wait for the body. It also tells fasthttp
// of a client that wants the connection closed, and of one that waits for 100: fasthttp knows one spelling of each.
func (s sentry) judge(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if wantsClose(h) {
		h.SetConnectionClose()
	}
	if strings.EqualFold(anyCase(h, "Expect"), "100-continue") {
		h.Set("Expect", "100-continue")
	}
	if why := s.reason(h); why != notRefused {
		h.Set(turnedAway, string(why))
		if h.ContentLength() > 0 {
			h.SetContentLength(0)
			h.SetConnectionClose()
		}
		if why == webSocket { // what follows may be frames, and would be read as requests
			h.SetConnectionClose()
		}
	}
	return fasthttp.RequestConfig{}
}

// reason returns why a request is turned away.
func (s sentry) reason(h *fasthttp.RequestHeader) refusal {
	epoch := s.backend.Epoch()
	if epoch.Keys != nil && h.ContentLength() != 0 {
		if _, ok := epoch.Keys.Check(anyCase(h, "Authorization"), anyCase(h, "X-Api-Key")); !ok {
			return badKey
		}
	}
	if h.ContentLength() > epoch.MaxBody {
		return bodyTooLong
	}
	if asksWebSocket(h) {
		return webSocket
	}
	return s.traffic.full(epoch)
}

// earlyFault returns the fault for which a sentry has turned the request away.
func earlyFault(h *fasthttp.RequestHeader) (f exchange.Fault, ok bool) {
	if why := h.Peek(turnedAway); len(why) > 0 {
		f, ok = earlyFaults[refusal(why)]
	}
	return f, ok
}

// anyCase returns a field by its name in any spelling. Peek knows one spelling.
func anyCase(h *fasthttp.RequestHeader, name string) string {
	for k, v := range h.All() {
		if strings.EqualFold(string(k), name) {
			return string(v)
		}
	}
	return ""
}

// wantsClose reports whether close is one of the options in the Connection fields. fasthttp finds it only where it
// stands alone, in small letters, in the last such field.
func wantsClose(h *fasthttp.RequestHeader) bool {
	if anyCase(h, "Connection") == "" {
		return false
	}
	fields, _ := readHeader(nil, h.RawHeaders(), true)
	for _, f := range fields {
		if strings.EqualFold(f.Name, "Connection") && upstream.NamesClose(f.Value) {
			return true
		}
	}
	return false
}
