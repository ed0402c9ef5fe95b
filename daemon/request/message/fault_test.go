package message

import (
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/session"
)

// TestFaultShapes is the table of how one error looks at each kind of endpoint, as an answer and as the end of a
// stream.
func TestFaultShapes(t *testing.T) {
	f := func(s Shape, status int, header, body, event string) {
		t.Helper()
		o := FaultBroken.Outbound(s)
		if o.Status != status || lines(o.Header) != header || string(o.Body) != body {
			t.Errorf("shape %d: %d\n%s%s\nwant: %d\n%s%s", s, o.Status, lines(o.Header), o.Body, status, header, body)
		}
		if got := string(FaultBroken.Event(s, 7)); got != event {
			t.Errorf("shape %d ends a stream with %q; want %q", s, got, event)
		}
	}
	const (
		text = `"the worker broke off in the middle of its answer"`
		json = "Content-Type: application/json\n"
		open = `{"error":{"message":` + text + `,"type":"upstream_error","param":null,"code":"worker_broke_off"}}`
		anth = `{"type":"error","error":{"type":"api_error","message":` + text + `}}`
		flat = `{"message":` + text + `,"type":"error","param":null,"code":"worker_broke_off","sequence_number":7}`
	)
	f(OpenAI, 502, json, open, "data: "+open+"\n\n")
	f(Responses, 502, json, open, "event: error\ndata: "+flat+"\n\n")
	f(Anthropic, 502, json, anth, "event: error\ndata: "+anth+"\n\n")
	if got := string(FaultTimeout.anthropic()); !strings.Contains(got, `"type":"timeout_error"`) {
		t.Errorf("Anthropic's clients know a 504 as timeout_error: %s", got)
	}
	if o := FaultNoWorker.Outbound(AWS); o.Get("x-amzn-ErrorType") == "" || o.Get(HeaderAWSRequest) != "" || o.Get("Retry-After") != "2" {
		t.Errorf("AWS's shape: %d %v", o.Status, o.Header)
	}
}

// TestFaultWebSocket: a 426 names the protocol that is served, in every shape.
func TestFaultWebSocket(t *testing.T) {
	if strings.Contains(FaultWebSocket.Message, "worker") { // docs/security.md keeps clients away from them
		t.Errorf("it says: %s", FaultWebSocket.Message)
	}
	for _, s := range []Shape{OpenAI, Responses, Anthropic} {
		o := FaultWebSocket.Outbound(s)
		if o.Status != 426 || o.Get("Upgrade") != "HTTP/1.1" || o.Get("Connection") != "Upgrade" || o.Get("Retry-After") != "" {
			t.Errorf("shape %d: %d %v", s, o.Status, o.Header)
		}
	}
}

// TestRejection is the table of what a client gets if the strategy turns it away.
func TestRejection(t *testing.T) {
	f := func(status int, text string, wait time.Duration, kind, message string, retry int) {
		t.Helper()
		got := Rejection(status, text, wait)
		if got.Status != status || got.Kind != kind || got.Message != message || got.Retry != retry || got.Code != "rejected_by_strategy" {
			t.Errorf("%d %q %v: %+v", status, text, wait, got)
		}
	}
	own := FaultRejected.Message
	f(429, "", 0, "rate_limit_error", own, 1)
	f(429, "too much", 7*time.Second, "rate_limit_error", "too much", 7)
	f(503, "", 0, "service_unavailable", own, 1)
	f(500, "", 0, "service_unavailable", own, 0)
	f(401, "who?", 0, "authentication_error", "who?", 0)
	f(403, "", 0, "permission_error", own, 0)
	f(400, "", 3*time.Second, "invalid_request_error", own, 3)
}

func TestFaultSession(t *testing.T) {
	for s, code := range map[session.Status]string{session.Unknown: "session_unknown", session.Expired: "session_expired",
		session.Closed: "session_closed", session.Lost: "session_lost", session.Silent: "session_store_silent"} {
		got := FaultSession(s)
		if got.Code != code || got.Message == "" || (got.Status == 503) != (s == session.Silent) {
			t.Errorf("%v: %+v; want %s", s, got, code)
		}
	}
}
