package exchange

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// TestForeseeALostSession: a preview of a request whose session ended with its worker names the refusal, and leaves the
// session for the request itself to end.
func TestForeseeALostSession(t *testing.T) {
	good := []string{streamed(role, word, stop, done)}
	s := newScene(t, good, good)
	s.epoch.Sessions = epoch.Naming{Identity: identity.New([]string{"X-Session-Id"}), EndWithWorker: true, Always: true}
	bound := s.chat("X-Session-Id", "mine").by
	var others []worker.Spec
	for _, w := range s.pool.Workers.Stats(time.Now()) {
		if w.ID != bound {
			others = append(others, worker.Spec{ID: w.ID, URL: w.URL})
		}
	}
	s.pool.Workers.Update(others, time.Now())

	in := inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[]}`, "X-Session-Id", "mine")
	in.Epoch = s.epoch
	name := session.Name{Kind: session.Key, Tenant: in.Caller.Name + "\x00", ID: "mine"}
	x := Foresee(in, func(*epoch.Pool) []*route.Strategy { return nil })
	if _, status := s.pool.Sessions.Peek(name, time.Now()); x.Refused != "session_lost" || status != session.Found {
		t.Errorf("refused with %q, and the session is %v; want session_lost, and it lives", x.Refused, status)
	}
	got := s.chat("X-Session-Id", "mine")
	if _, status := s.pool.Sessions.Peek(name, time.Now()); got.in.Seen.End != "session_lost" || status != session.Unknown {
		t.Errorf("the request ended with %q, and the session is %v; want session_lost and unknown", got.in.Seen.End, status)
	}
}
