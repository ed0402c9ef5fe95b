package front

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/upstream"
)

// sentry judges requests by their header alone. fasthttp waits for the first byte of a body before it calls the
// handler, and a client may wait for an answer before it sends one.
type sentry struct {
	current func() *Epoch // in force now
	traffic *traffic
}

// turnedAway is a pseudo header. judge sets it because fasthttp gives it nothing but the header, and the handler
// reads it. Its leading blank keeps clients from sending it.
const turnedAway = " turned-away"

// earlyFaults are the faults for which a sentry turns requests away, by the value of turnedAway.
var earlyFaults = map[string]exchange.Fault{
	"401":         exchange.FaultKey,
	"413":         exchange.FaultTooLarge,
	"429":         exchange.FaultOverload,
	"429 workers": exchange.FaultFull,
}

// judge is called by fasthttp between header and body of every request. It marks a request that it turns away, and
// removes its body's length, so that fasthttp calls the handler without a wait for the body. It also tells fasthttp
// of a client that wants the connection closed.
func (s sentry) judge(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if wantsClose(h) {
		h.SetConnectionClose()
	}
	if why := s.reason(h); why != "" {
		h.Set(turnedAway, why)
		if h.ContentLength() > 0 {
			h.SetContentLength(0)
			h.SetConnectionClose()
		}
	}
	return fasthttp.RequestConfig{}
}

// reason returns why a request is turned away: a key of earlyFaults, or "".
func (s sentry) reason(h *fasthttp.RequestHeader) string {
	epoch := s.current()
	if epoch.Keys != nil && h.ContentLength() != 0 {
		if _, ok := epoch.Keys.Check(anyCase(h, "Authorization"), anyCase(h, "X-Api-Key")); !ok {
			return "401"
		}
	}
	if h.ContentLength() > epoch.MaxBody {
		return "413"
	}
	return s.traffic.full(epoch)
}

// earlyFault returns the fault for which a sentry has turned the request away.
func earlyFault(h *fasthttp.RequestHeader) (f exchange.Fault, ok bool) {
	if why := h.Peek(turnedAway); len(why) > 0 {
		f, ok = earlyFaults[string(why)]
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
