package exchange

import (
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/message"
)

// TestBrokenStreamInCapitals: a media type has no case.
func TestBrokenStreamInCapitals(t *testing.T) {
	f := func(what, from string) {
		t.Helper()
		got := newScene(t, []string{from}).chat()
		if !got.broken || !strings.Contains(got.body, word) || !strings.Contains(got.body, `"code":"worker_broke_off"`) {
			t.Errorf("%s: broken %v, the client gets\n%s", what, got.broken, got.body)
		}
	}
	plain := streamed(role, word, pause, "cut")
	f("as vLLM writes", plain)
	f("in capitals", strings.Replace(plain, "text/event-stream", "Text/Event-Stream; Charset=UTF-8", 1))
}

// TestErrorEventOfResponsesIsNumbered: one behind the last event that the client has got.
func TestErrorEventOfResponsesIsNumbered(t *testing.T) {
	delta := func(n, text string) string {
		return `data: {"type":"response.output_text.delta","delta":"` + text + `","sequence_number":` + n + "}\n\n"
	}
	f := func(want string, events ...string) {
		t.Helper()
		s := newScene(t, []string{streamed(events...)})
		in := inbound("POST", "/v1/responses", `{"model":"m","stream":true,"input":"hi"}`)
		got := s.ask(in)
		if !got.broken || !strings.HasSuffix(got.body, `"code":"worker_broke_off","sequence_number":`+want+"}\n\n") {
			t.Errorf("broken %v, the client gets\n%s\nwant the number %s", got.broken, got.body, want)
		}
	}
	f("5", delta("4", "a"), pause, "cut")
	f("12", delta("9", "a"), pause, delta("10", "b"), delta("11", "c"), pause, "cut")
	f("12", delta("9", "a"), pause, delta("10", "b"), delta("11", "c")+delta("12", "d")[:60], pause, "cut")
	f("5", delta("4", "a"), pause, `data: {"type":"response.completed","sequence_number":5,"response":{"status":"cancelled"}}`+"\n\n")
	f("0", strings.Replace(delta("4", "a"), "sequence_number", "other", 1), pause, "cut")
}

// TestASessionDoesNotBeginWithoutAnAnswer: its client left, perhaps because the worker hangs.
func TestASessionDoesNotBeginWithoutAnAnswer(t *testing.T) {
	s := newScene(t, []string{strings.Repeat(pause, 50)})
	s.epoch.Sessions = epoch.Naming{Identity: identity.New([]string{"X-Session-Id"}), Always: true}
	in := inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[]}`, "X-Session-Id", "a")
	in.Epoch, in.ID = s.epoch, "id-1"
	var all message.Lives
	life := new(message.Life)
	all.Begin(life)
	defer life.Leave()
	live := func() int { return len(s.pool.Sessions.Live(time.Now())) }
	go func() {
		for end := time.Now().Add(500 * time.Millisecond); live() == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		life.End(message.ErrClientGone)
	}()
	out := s.Serve(life, in)
	if out.Status != 499 || in.Seen.Session == "" || live() != 0 {
		t.Errorf("%d, session of kind %q, %d bindings left; want 499, a session and none", out.Status, in.Seen.Session, live())
	}
}
