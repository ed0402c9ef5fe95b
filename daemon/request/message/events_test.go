package message

import (
	"io"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// TestFaultIn is the table of the forms in which workers report errors.
func TestFaultIn(t *testing.T) {
	f := func(body, message, kind, code string) {
		t.Helper()
		got := faultIn(422, []byte(body))
		if got.Status != 422 || got.Message != message || got.Kind != kind || got.Code != code {
			t.Errorf("%s: %+v", body, got)
		}
	}
	f(`{"error":{"message":"m","type":"k","param":null,"code":400}}`, "m", "k", "400")
	f(`{"error":{"message":"m","type":"k","code":"c"}}`, "m", "k", "c")
	f(`{"object":"error","message":"m","type":"k","code":400}`, "m", "k", "400")
	f(`{"type":"error","error":{"type":"k","message":"m"}}`, "m", "k", "")
	f(`{"error":"m"}`, "m", "upstream_error", "")
	f(`{"detail":"m"}`, "m", "upstream_error", "")
	f(`{"detail":[{"loc":["body"],"msg":"m"}]}`, `[{"loc":["body"],"msg":"m"}]`, "upstream_error", "")
	f(`{"error":{"message":7}}`, "the worker gave no reason", "upstream_error", "")
	f("Internal \xffServer Error", "Internal Server Error", "upstream_error", "")
	f("", "the worker gave no reason", "upstream_error", "")
	f(strings.Repeat("x", 900), strings.Repeat("x", 500), "upstream_error", "")
}

// TestInEvents: a good stream goes on as it is, and each other answer is an error event that ends the stream.
func TestInEvents(t *testing.T) {
	f := func(o *Outbound, shape Shape, status int, want string) {
		t.Helper()
		in := &Inbound{Endpoint: Endpoint{Shape: shape}}
		got := o.InEvents(in)
		text, err := io.ReadAll(got.Stream)
		if err != nil || got.Status != status || got.Length != -1 || string(text) != want {
			t.Errorf("%d: %d %s %v; want %d %s", o.Status, got.Status, text, err, status, want)
		}
	}
	body := func(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
	events := []upstream.Field{{Name: "Content-Type", Value: "text/event-stream; charset=utf-8"}}
	packed := append([]upstream.Field{{Name: "Content-Encoding", Value: "gzip"}}, events...)
	const none = `data: {"error":{"message":"the worker did not answer with a stream of events; with server.keepalive off its` +
		` answer would have come","type":"upstream_error","param":null,"code":"no_stream"}}` + "\n\n"
	f(&Outbound{Status: 200, Header: events, Stream: body("data: x\n\n"), Length: 9}, OpenAI, 200, "data: x\n\n")
	f(&Outbound{Status: 200, Header: packed, Stream: body("\x1f"), Length: -1}, OpenAI, 502, none)
	f(&Outbound{Status: 200, Body: []byte("{}")}, OpenAI, 502, none)
	f(&Outbound{Status: 500, Stream: body(`{"detail":"m"}`), Length: -1}, Anthropic, 500,
		"event: error\ndata: "+`{"type":"error","error":{"type":"api_error","message":"m"}}`+"\n\n")
	f(FaultWaited.Outbound(Responses), Responses, 429, "event: error\ndata: "+
		`{"message":"no worker had room for as long as a request may wait here; try again shortly","type":"error",`+
		`"param":null,"code":"queue_wait","sequence_number":0}`+"\n\n")
}
