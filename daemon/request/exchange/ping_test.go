package exchange

import (
	"strings"
	"testing"
)

// TestPingsPass: a ping goes to the client at once, as a comment does. From then on the request stays at its worker;
// before, another worker gets it.
func TestPingsPass(t *testing.T) {
	const (
		start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n"
		ping  = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
		more  = "event: x\ndata: {\"type\":\"x_new\"}\n\n"
		text  = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"hi\"}}\n\n"
		end   = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	)
	f := func(what, by, begins string, events ...string) {
		t.Helper()
		s := newScene(t, []string{streamed(events...)}, []string{streamed(start, text, end)})
		got := s.ask(inbound("POST", "/v1/messages", `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`))
		if got.by != by || !strings.HasPrefix(got.body, begins) || strings.Count(got.body, "message_start") != 2 {
			t.Errorf("%s: by %s, %q; want by %s, beginning with %q", what, got.by, got.body, by, begins)
		}
	}
	f("it breaks off behind its opener", "w1", start+text, start, pause, "cut")
	f("behind a ping", "w0", start+ping, start, pause, ping, pause, "cut")
	f("behind a ping that came with the opener", "w0", start+ping, start+ping, pause, "cut")
	f("behind a comment", "w0", start+": x\n\n", start, pause, ": x\n\n", pause, "cut")
	f("behind an event that is not known", "w0", start+more, start, pause, more, pause, "cut")
	f("it goes on behind a ping", "w0", start+ping+text, start, pause, ping, pause, text, end)
}
