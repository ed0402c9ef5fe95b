package exchange

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// TestSignOf: what an answer shows against its worker, by its status, its Content-Type and its text.
func TestSignOf(t *testing.T) {
	r := &request{in: &Inbound{Body: []byte(`{"prompt":"what is EngineCore?"}`)}}
	r.read.req = &prompt.Request{Kind: prompt.Chat}
	content, text := "application/json", `{}`
	f := func(status int, want worker.Kind) {
		t.Helper()
		x := &upstream.Response{Status: status, Header: upstream.Header{{Name: "Content-Type", Value: content}}}
		got := signOf(r, x, []byte(text))
		if got.Kind != want || got.Rejected != (status >= 400 && want == worker.Answered) {
			t.Errorf("%d, %s, %s: %+v; want kind %d", status, content, text, got, want)
		}
	}
	f(200, worker.Answered)
	for _, status := range []int{400, 402, 409, 410, 413, 415, 421, 424, 501} {
		f(status, worker.Answered)
	}
	for _, status := range []int{408, 425, 429, 503, 529} {
		f(status, worker.Busy)
	}
	for _, status := range []int{401, 403, 404, 405, 422} {
		f(status, worker.Denied)
	}
	for _, status := range []int{500, 502, 504} {
		f(status, worker.Failed)
	}
	text = `{"error":{"message":"EngineCore encountered an issue. See stack trace"}}`
	f(500, worker.Dying)
	f(502, worker.Failed) // of a balancer
	r.in.Body = []byte(`{"prompt":"EngineCore encountered an issue: why?"}`)
	f(500, worker.Failed) // the client's own words
	text = `{"error":{"message":"cannot schedule new futures after shutdown"}}`
	f(500, worker.Dying)

	content = "Text/HTML; charset=utf-8"
	f(200, worker.Denied)
	f(400, worker.Answered)
	r.read.req.Kind = prompt.Other // a page may be what was asked for
	f(200, worker.Answered)
}

// TestClassOf: refusals of one kind of request say nothing of another.
func TestClassOf(t *testing.T) {
	chats, images := classOf(prompt.Chat, "/v1/chat/completions"), classOf(prompt.Other, "/v1/images/generations")
	if chats == classOf(prompt.Embedding, "/v1/embeddings") || chats == images {
		t.Error("chats share a class with embeddings or images")
	}
	if images != classOf(prompt.Other, "/v1/images/edits") {
		t.Error("images have two classes")
	}
	if images == classOf(prompt.Other, "/v1/audio/speech") && images == classOf(prompt.Other, "/v1/videos") {
		t.Error("all that has no kind shares a class")
	}
}
