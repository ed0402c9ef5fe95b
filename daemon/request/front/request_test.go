package front

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// TestSize holds a request, which a stream keeps for as long as it lasts, to the largest that the allocator gives 1,152
// bytes with its own word of 8. The next larger one gets 1,280.
func TestSize(t *testing.T) {
	if size := unsafe.Sizeof(request{}); size > 1024 { // Go's next size is 1,152
		t.Errorf("a request has %d bytes; want at most 1024", size)
	}
}

// refusal returns what a request with that head, of which no byte of the body has come, is refused with, and whether
// its connection ends. Status 0 = it is served.
func (h *handler) refusal(t *testing.T, head string) (status int, code string, closes bool) {
	t.Helper()
	fc, _, _, err := headOf([]byte(head + "\r\n"))
	if err != nil {
		t.Fatalf("%q: %v", head, err)
	}
	if fc.Request.Header.ContentLength() > 0 {
		t.Errorf("%q: fasthttp waits for a body", head)
	}
	q := newRequest(h, fc)
	defer q.forget()
	if out := q.refuse(); out != nil {
		status = out.Status
	}
	return status, q.in.Seen.End, fc.Response.ConnectionClose() || fc.Request.Header.ConnectionClose()
}

// limited returns a handler of a pool without workers' limits, and its epoch.
func limited() (*handler, *Epoch) {
	served := &Epoch{MaxBody: 100, MaxInFlight: 2}
	pool := &epoch.Pool{Pool: &route.Pool{Workers: worker.New(worker.Config{}, time.Now())}}
	served.Pools = []*epoch.Pool{pool} // without one, every request is one too many
	return &handler{meter: uncounted{}, backend: backend{epoch: served}}, served
}

// TestRefuse: whom a header alone turns away, before a byte of the body has come.
func TestRefuse(t *testing.T) {
	h, epoch := limited()
	f := func(framing, authorization string, want message.Fault) {
		t.Helper()
		status, code, _ := h.refusal(t, "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"+framing+"authorization: "+
			authorization+"\r\n")
		if status != want.Status || code != want.Code {
			t.Errorf("%q, %q: refused with %d %s; want %d %s", framing, authorization, status, code, want.Status, want.Code)
		}
	}
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }
	const chunked = "transfer-encoding: chunked\r\n"
	none := message.Fault{}
	f("", "", none)
	f(length(0), "", none)
	f(length(100), "", none)
	f(length(101), "", message.FaultTooLarge)
	f(chunked, "", none) // the bound is the bodyReader's
	f(chunked+length(1), "", message.FaultFraming)
	epoch.Keys = gate.NewKeys([]gate.Key{{Name: "k", Secret: "secret"}})
	f(length(10), "Bearer secret", none)
	f(length(10), "Bearer other", message.FaultKey)
	f(length(101), "", message.FaultKey)
	f(chunked, "", message.FaultKey)
	f("", "", message.FaultKey)
	epoch.Keys = nil
	h.traffic.begin()
	f(length(10), "", none)
	last := h.traffic.begin()
	f(length(10), "", message.FaultOverload)
	f("", "", message.FaultOverload)
	f(length(101), "", message.FaultTooLarge)
	h.traffic.end(last)
	f(length(10), "", none)
	epoch.Pools = nil
	f(length(10), "", message.FaultFull)
	for want, status := range map[*message.Fault]int{&message.FaultWebSocket: 426, &message.FaultKey: 401,
		&message.FaultTooLarge: 413, &message.FaultOverload: 429, &message.FaultFull: 429} {
		if want.Status != status {
			t.Errorf("%s: status %d; want %d", want.Code, want.Status, status)
		}
	}
}

// TestRefuseWebSockets: a handshake is refused whatever its spelling. Another protocol is asked for in vain, as HTTP
// allows, and so is a WebSocket by a request that is no handshake.
func TestRefuseWebSockets(t *testing.T) {
	h, _ := limited()
	f := func(method, version string, refused bool, upgrades ...string) {
		t.Helper()
		head := method + " /v1/models HTTP/" + version + "\r\nHost: x\r\nConnection: keep-alive\r\n"
		for _, u := range upgrades {
			head += "upgrade: " + u + "\r\n"
		}
		status, _, closes := h.refusal(t, strings.Replace(head, "POST /v1/models", "POST /v1/completions", 1))
		want := 0
		if refused {
			want = message.FaultWebSocket.Status
		}
		if status != want || closes != refused {
			t.Errorf("%s %s, Upgrade %q: status %d, closes %v; want %d", method, version, upgrades, status, closes, want)
		}
	}
	f("GET", "1.1", true, "websocket")
	f("GET", "1.1", true, "WebSocket")
	f("GET", "1.1", true, "h2c, websocket")
	f("GET", "1.1", true, "h2c", "\twebsocket/13 ")
	f("GET", "1.1", false)
	f("GET", "1.1", false, "")
	f("GET", "1.1", false, "h2c")
	f("GET", "1.1", false, "websocketx")
	f("POST", "1.1", false, "websocket")
	f("POST", "1.1", false, "h2c")
	f("GET", "1.0", false, "websocket")
}

// TestBeforeBody: a client that waits for 100 is found in whatever letters it asks.
func TestBeforeBody(t *testing.T) {
	f := func(line string, want bool) {
		t.Helper()
		fc, _, _, err := headOf([]byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n" + line + "\r\n\r\n"))
		if err != nil || fc.Request.MayContinue() != want {
			t.Errorf("%q: waits for 100: %v, %v; want %v", line, fc.Request.MayContinue(), err, want)
		}
	}
	f("Expect: 100-continue", true)
	f("expect: 100-Continue", true)
	f("EXPECT: 100-CONTINUE", true)
	f("Expect: 200-ok", false)
	f("X: 100-continue", false)
}
