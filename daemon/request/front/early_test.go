package front

import (
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// TestSentry: whom a header alone turns away, and that fasthttp then waits for no body.
func TestSentry(t *testing.T) {
	epoch := &Epoch{MaxBody: 100, MaxInFlight: 2}
	pool := &exchange.Pool{Pool: &route.Pool{Workers: worker.New(worker.Config{}, time.Now())}}
	epoch.Pools = []*exchange.Pool{pool} // without one, every request is one too many
	var busy traffic
	f := func(length int, authorization string, want refusal) {
		t.Helper()
		var h fasthttp.RequestHeader
		h.DisableNormalizing()
		h.SetMethod("POST")
		h.SetContentLength(length)
		h.Set("authorization", authorization)
		sentry{backend: backend{epoch: epoch}, traffic: &busy}.judge(&h)
		if got := refusal(h.Peek(turnedAway)); got != want {
			t.Errorf("%d bytes, %q: turned away with %q; want %q", length, authorization, got, want)
		}
		if away := want != notRefused; away && (h.ContentLength() > 0 || length > 0 && !h.ConnectionClose()) {
			t.Errorf("%d bytes, %q: fasthttp waits for %d", length, authorization, h.ContentLength())
		}
		fault, ok := earlyFault(&h)
		if ok != (want != notRefused) || ok && fault.Code != earlyFaults[want].Code {
			t.Errorf("%d bytes, %q: fault %v, %v", length, authorization, fault, ok)
		}
	}
	f(0, "", notRefused)
	f(100, "", notRefused)
	f(101, "", bodyTooLong)
	f(-1, "", notRefused) // chunked: the bound is the intake's
	epoch.Keys = gate.NewKeys([]gate.Key{{Name: "k", Secret: "secret"}})
	f(10, "Bearer secret", notRefused)
	f(10, "Bearer other", badKey)
	f(101, "", badKey)
	f(-1, "", badKey)
	f(0, "", notRefused) // no body to wait for: the visit answers
	epoch.Keys = nil
	busy.begin()
	f(10, "", notRefused)
	last := busy.begin()
	f(10, "", routerFull)
	f(0, "", routerFull)
	f(101, "", bodyTooLong)
	busy.end(last)
	f(10, "", notRefused)
	epoch.Pools = nil
	f(10, "", workersFull)
}

// A client cannot send the mark itself: a name with a blank is no field.
func TestTheMarkIsNoField(t *testing.T) {
	raw := "POST / HTTP/1.1\r\nHost: a\r\n" + turnedAway + ": " + string(badKey) + "\r\n\r\n"
	if _, sound := readHeader(nil, []byte(raw[len("POST / HTTP/1.1\r\n"):]), true); sound {
		t.Error("the mark passes as a field")
	}
}

// TestSentryRefusesWebSockets: a handshake is refused whatever its spelling. Another protocol is asked for in vain, as
// HTTP allows, and so is a WebSocket by a request that is no handshake.
func TestSentryRefusesWebSockets(t *testing.T) {
	epoch := &Epoch{MaxBody: 100, MaxInFlight: 2}
	epoch.Pools = []*exchange.Pool{{Pool: &route.Pool{Workers: worker.New(worker.Config{}, time.Now())}}}
	f := func(method, version string, want refusal, upgrades ...string) {
		t.Helper()
		var h fasthttp.RequestHeader
		h.DisableNormalizing()
		h.SetMethod(method)
		h.SetProtocol(version)
		for _, u := range upgrades {
			h.Add("upgrade", u)
		}
		s := sentry{backend: backend{epoch: epoch}, traffic: new(traffic)}
		s.judge(&h)
		if got := refusal(h.Peek(turnedAway)); got != want {
			t.Errorf("%s %s, Upgrade %q: turned away with %q; want %q", method, version, upgrades, got, want)
		}
		if h.ConnectionClose() != (want == webSocket) {
			t.Errorf("%s %s, Upgrade %q: closes %v", method, version, upgrades, h.ConnectionClose())
		}
	}
	const http11 = "HTTP/1.1"
	f("GET", http11, webSocket, "websocket")
	f("GET", http11, webSocket, "WebSocket")
	f("GET", http11, webSocket, "h2c, websocket")
	f("GET", http11, webSocket, "h2c", "\twebsocket/13 ")
	f("GET", http11, notRefused)
	f("GET", http11, notRefused, "")
	f("GET", http11, notRefused, "h2c")
	f("GET", http11, notRefused, "websocketx")
	f("POST", http11, notRefused, "websocket")
	f("POST", http11, notRefused, "h2c")
	f("GET", "HTTP/1.0", notRefused, "websocket")
}

func TestRefusalsHaveTheirStatus(t *testing.T) {
	for why, status := range map[refusal]int{webSocket: 426, badKey: 401, bodyTooLong: 413, routerFull: 429, workersFull: 429} {
		if f := earlyFaults[why]; f.Status != status {
			t.Errorf("%s: status %d; want %d", why, f.Status, status)
		}
	}
}
