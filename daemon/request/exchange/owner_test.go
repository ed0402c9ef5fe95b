package exchange

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// idEvent is an event of a chat with an id, which counts the request's as "id-1".
func idEvent(id, text string) string {
	return fmt.Sprintf(`data: {"id":"chatcmpl-%s","choices":[{"index":0,"delta":{"content":%q}}]}`, id, text) + "\n\n"
}

// keptBy makes the worker of that place one whose ids have held the request's.
func (s *scene) keptBy(worker string) {
	for _, w := range s.pool.Workers.Stats(time.Now()) {
		if w.ID == worker {
			for _, stream := range []bool{false, true} {
				s.pool.Clients.Habit(w.URL, prompt.Chat, stream).Learn(strings.Repeat("a", 32), prompt.OwnerSame, prompt.Frame{Before: len("chatcmpl-")})
			}
		}
	}
}

// TestAnotherRequestsAnswer: it reaches no client, whenever it shows whose it is.
func TestAnotherRequestsAnswer(t *testing.T) {
	good := streamed(idEvent("id-1", "good"), stop, done)
	f := func(what string, bad string, want answer, counts string) {
		t.Helper()
		s := newScene(t, []string{bad}, []string{good})
		s.keptBy("w0")
		got := s.chat()
		if got.status != want.status || got.broken != want.broken || got.by != want.by || !strings.Contains(got.body, want.body) ||
			strings.Contains(got.body, "secret") || want.broken != strings.Contains(got.body, "error") {
			t.Errorf("%s: %+v; want %+v", what, got, want)
		}
		if all := strings.Join(s.counted.counted, ", "); strings.Contains(all, "foreign p w0") != (counts != "") || !strings.Contains(all, counts) {
			t.Errorf("%s: counted %s; want %q", what, all, counts)
		}
	}
	retried := answer{status: 200, body: "good", by: "w1"}
	f("its own", streamed(idEvent("id-1", "mine"), stop, done), answer{status: 200, body: "mine", by: "w0"}, "")
	f("all of it", streamed(idEvent("id-2", "secret"), stop, done), retried, "retried p foreign_answer")
	f("part of another's id", streamed(idEvent("id-11", "secret"), stop, done), retried, "foreign p w0")
	f("a whole one", whole(200, `{"id":"chatcmpl-id-2","choices":[{"index":0,"message":{"content":"secret"},"finish_reason":"stop"}]}`), retried, "foreign p w0")
	f("one that failed, too", streamed(`data: {"id":"chatcmpl-id-2","error":{"message":"secret","code":400}}`+"\n\n"), retried, "foreign p w0")
	f("behind its own, before any output", streamed(strings.Replace(role, `{"`, `{"id":"chatcmpl-id-1","`, 1), pause, idEvent("id-2", "secret"), stop, done),
		retried, "foreign p w0")
	broken := answer{status: 200, body: "mine", broken: true, by: "w0"}
	f("in the middle", streamed(idEvent("id-1", "mine"), pause, idEvent("id-2", "secret"), stop, done), broken, "foreign p w0")
	f("in the middle, cut in two", streamed(idEvent("id-1", "mine"), pause, idEvent("id-2", "secret")[:30], pause, idEvent("id-2", "secret")[30:], done), broken, "foreign p w0")
	f("behind a comment", streamed(": ping\n\n", pause, idEvent("id-2", "secret"), stop, done), answer{status: 200, broken: true, by: "w0"}, "foreign p w0")
	f("of an endpoint without ids", whole(200, `{"count":1,"tokens":[1],"s":"secret"}`), retried, "foreign p w0")
	f("events without ids", streamed(idEvent("id-1", "secret")[:6]+`{"choices":[{"index":0,"delta":{"content":"secret"}}]}`+"\n\n", stop, done), retried, "foreign p w0")
	f("in chunks, without events", "HTTP/1.1 200 x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"+
		"18\r\n{\"id\":\"chatcmpl-id-2\",\"s\"\r\n9\r\n:\"secret\"\r\n1\r\n}\r\n0\r\n\r\n", retried, "foreign p w0")
}
