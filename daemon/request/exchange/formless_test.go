package exchange

import (
	"strings"
	"testing"
	"time"
)

// chunks is an answer of no stated length.
func chunks(kind string, pieces ...string) string {
	return strings.Replace(streamed(pieces...), "text/event-stream", kind, 1)
}

// TestFormless: a success that is no answer goes to the next worker, and shows no speed of the first. What has another
// form than the router knows stays an answer.
func TestFormless(t *testing.T) {
	typed := func(kind, body string) string { return strings.Replace(whole(200, body), "application/json", kind, 1) }
	f := func(path, body, script, by string) {
		t.Helper()
		s := newScene(t, []string{script}, []string{whole(200, `{"choices":[],"data":[],"from":"w1"}`)})
		got := s.ask(inbound("POST", path, body))
		if got.status != 200 || got.by != by {
			t.Errorf("%s, %.60q: %d by %q; want 200 by %s", path, script, got.status, got.by, by)
		}
	}
	const ask, input = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, `{"model":"m","input":"hi"}`
	f(chats, ask, typed("text/plain", "welcome"), "w1")
	f(chats, ask, typed("text/plain", good), "w0")
	f(chats, ask, whole(200, `{"status":"ok"}`), "w1")
	f(chats, ask, whole(200, ""), "w1")
	f(chats, ask, chunks("application/json", good[:9], good[9:]), "w0")
	f("/v1/embeddings", input, whole(200, `{"object":"list","data":[]}`), "w0")
	f("/v1/embeddings", input, whole(200, `[]`), "w0")
	f("/v1/embeddings", input, whole(200, `{}`), "w1")
	f("/v1/embeddings", input, whole(200, `{"detail":"welcome"}`), "w1")
	f("/pooling", input, typed("application/octet-stream", "xyz"), "w0")
	f("/pooling", input, strings.Replace(typed("application/json", "xyz"), "Content-Type", "Content-Encoding: gzip\r\nContent-Type", 1), "w0")
	f("/invocations", ask, whole(200, `{}`), "w0")
	f("/v1/audio/transcriptions", input, typed("text/plain", "words"), "w0")
	f("/v1/audio/transcriptions", input, whole(200, `{}`), "w0")

	for script, learnt := range map[string]bool{whole(200, good): true, whole(200, `{}`): false} {
		s := newScene(t, []string{script})
		if s.chat(); (s.pool.Workers.Stats(time.Now())[0].TTFT > 0) != learnt {
			t.Errorf("%.90q: the time of its first byte counts: %v; want %v", script, !learnt, learnt)
		}
	}
}
