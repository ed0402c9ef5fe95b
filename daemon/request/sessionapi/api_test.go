package sessionapi

import (
	"io"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/sagemaker"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// TestEndedAtWorker is the table of answers by which a session ends that its worker holds.
func TestEndedAtWorker(t *testing.T) {
	held := session.Binding{Worker: "w", Minted: true}
	f := func(by string, b session.Binding, out message.Outbound, want session.Status) {
		t.Helper()
		in := &message.Inbound{}
		in.Seen.Worker = by
		if got := endedAtWorker(in, b, &out); got != want {
			t.Errorf("by %q, %+v, %d %s: %v; want %v", by, b, out.Status, out.Body, got, want)
		}
	}
	closed := message.Outbound{Status: 200, Header: fields(sagemaker.HeaderClosedSession, "x")}
	lost := message.Outbound{Status: 400, Body: []byte(`{"message":"Session not found: x"}`)}
	f("w", held, closed, session.Closed)
	f("w", held, lost, session.Lost)
	f("", held, closed, session.Found)                        // the router's own answer
	f("v", held, lost, session.Found)                         // of a worker that does not hold it
	f("w", session.Binding{Worker: "w"}, lost, session.Found) // the router alone holds it
	f("w", held, message.Outbound{Status: 200}, session.Found)
	f("w", held, message.Outbound{Status: 400, Body: []byte(`{"message":"bad"}`)}, session.Found)
	f("w", held, message.Outbound{Status: 404, Body: lost.Body}, session.Found)
	f("w", held, message.Outbound{Status: 400, Stream: io.NopCloser(strings.NewReader("session not found"))}, session.Found)
	closed.Status = 201
	f("w", held, closed, session.Found)
}

// TestKnowsNoSessions is the table of a worker's answers to NEW_SESSION in a body.
func TestKnowsNoSessions(t *testing.T) {
	f := func(status int, body string, want bool) {
		t.Helper()
		if got := knowsNoSessions(status, []byte(body)); got != want {
			t.Errorf("%d %.60s: %v", status, body, got)
		}
	}
	f(200, "", false)
	f(400, `{"error":"sessions are not enabled"}`, true)
	f(400, `{"error":{"message":"no suitable handler found"}}`, true)
	f(400, `{"error":"the session is full"}`, false)
	f(400, strings.Repeat(" ", 4096)+"not enabled", false) // too far in
	f(404, "", true)
	f(405, "", true)
	f(422, "", true)
	f(500, "not enabled", false)
	f(503, "", false)
}

// TestGone: a session that is the resource itself is not found, but a silent store leaves that open.
func TestGone(t *testing.T) {
	for s, status := range map[session.Status]int{session.Unknown: 404, session.Expired: 404, session.Closed: 404, session.Lost: 404,
		session.Silent: 503} {
		if got := gone(s); got.Status != status || got.Code != message.FaultSession(s).Code {
			t.Errorf("%v: %+v; want %d", s, got, status)
		}
	}
}

func TestKeepsSessions(t *testing.T) {
	for set, want := range map[string]bool{"on": true, "off": false} {
		if got := keepsSessions(&epoch.Pool{WorkerSessions: set}, nil); got != want {
			t.Errorf("%q: %v", set, got)
		}
	}
}
