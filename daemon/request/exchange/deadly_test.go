package exchange

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/message"
)

// TestADeadlyRequest: what its workers do decides whether a request is one.
func TestADeadlyRequest(t *testing.T) {
	dying := whole(500, `{"error":"EngineCore encountered an issue"}`)
	f := func(what string, in *message.Inbound, scripts []string, lost int, status int, code string, want int8) {
		t.Helper()
		var lists [][]string
		for _, script := range scripts {
			lists = append(lists, []string{script})
		}
		s := newScene(t, lists...)
		for i := range lost {
			s.lethal.Lose(in, admission.Loss{Pool: s.pool.Workers, Worker: s.pool.Workers.At(uint32(i)).Key(), Sent: time.Now(),
				At: time.Now()})
			s.pool.Workers.Dead(s.numbers[i], "refused", time.Now().Add(time.Millisecond))
		}
		if a := s.ask(in); a.status != status || code != "" && in.Seen.End != code {
			t.Errorf("%s: %d, %q; want %d, %q", what, a.status, in.Seen.End, status, code)
		}
		if kept := s.lethal.Suspects(); kept != (in.Method == "POST") {
			t.Errorf("%s: remembered %v", what, kept)
		}
		for _, id := range s.numbers[lost:] { // a dead engine's server still answers
			s.pool.Workers.Healthy(id, time.Now().Add(500*time.Millisecond))
		}
		if got := s.lethal.Deaths(in, time.Now().Add(time.Second)); got != want {
			t.Errorf("%s: %d workers have ended with it; want %d", what, got, want)
		}
	}
	post := func() *message.Inbound { return inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[]}`) }
	f("its engine is dead", post(), []string{dying}, 0, 500, "", 1)
	f("two have ended with it", post(), []string{"", "", whole(200, good)}, 2, 500, message.FaultLethal.Code, 2)
	f("one, and another answers", post(), []string{"", whole(200, good)}, 1, 200, "", 0)
	f("one, and another fails it", post(), []string{"", whole(500, `{}`)}, 1, 500, "", 1)
	f("a request that asks for nothing new", inbound("GET", "/v1/responses/resp_1", ""), []string{"", ""}, 0, 503, "", 0)
}
