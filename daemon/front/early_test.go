package front

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/route"
	"github.com/warmpath/warmpath/daemon/worker"
)

// TestSentry: whom a header alone turns away, and that fasthttp then waits for no body.
func TestSentry(t *testing.T) {
	epoch := &Epoch{MaxBody: 100, MaxInFlight: 2}
	pool := &exchange.Pool{Pool: &route.Pool{Workers: worker.New(worker.Config{}, time.Now())}}
	epoch.Pools = []*exchange.Pool{pool} // without one, every request is one too many
	var busy traffic
	f := func(length int, authorization, want string) {
		t.Helper()
		var h fasthttp.RequestHeader
		h.DisableNormalizing()
		h.SetMethod("POST")
		h.SetContentLength(length)
		h.Set("authorization", authorization)
		sentry{current: func() *Epoch { return epoch }, traffic: &busy}.judge(&h)
		if got := string(h.Peek(turnedAway)); got != want {
			t.Errorf("%d bytes, %q: turned away with %q; want %q", length, authorization, got, want)
		}
		if away := want != ""; away && (h.ContentLength() > 0 || length > 0 && !h.ConnectionClose()) {
			t.Errorf("%d bytes, %q: fasthttp waits for %d", length, authorization, h.ContentLength())
		}
		fault, ok := earlyFault(&h)
		if ok != (want != "") || ok && fault.Code != earlyFaults[want].Code {
			t.Errorf("%d bytes, %q: fault %v, %v", length, authorization, fault, ok)
		}
	}
	f(0, "", "")
	f(100, "", "")
	f(101, "", "413")
	f(-1, "", "") // chunked: the bound is the intake's
	epoch.Keys = gate.NewKeys([]gate.Key{{Name: "k", Secret: "secret"}})
	f(10, "Bearer secret", "")
	f(10, "Bearer other", "401")
	f(101, "", "401")
	f(-1, "", "401")
	f(0, "", "") // no body to wait for: the visit answers
	epoch.Keys = nil
	busy.begin()
	f(10, "", "")
	last := busy.begin()
	f(10, "", "429")
	f(0, "", "429")
	f(101, "", "413")
	busy.end(last)
	f(10, "", "")
	epoch.Pools = nil
	f(10, "", "429 workers")
}

// A client cannot send the mark itself: a name with a blank is no field.
func TestTheMarkIsNoField(t *testing.T) {
	raw := "POST / HTTP/1.1\r\nHost: a\r\n" + turnedAway + ": 401\r\n\r\n"
	if _, sound := readHeader(nil, []byte(raw[len("POST / HTTP/1.1\r\n"):]), true); sound {
		t.Error("the mark passes as a field")
	}
	for name, f := range earlyFaults {
		if status, _, _ := strings.Cut(name, " "); status != strconv.Itoa(f.Status) {
			t.Errorf("the early fault %q has the status %d", name, f.Status)
		}
	}
}
