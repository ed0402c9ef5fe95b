package exchange

import (
	"fmt"
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

// TestClassOf: refusals of one kind of request say nothing of another, nor of another model.
func TestClassOf(t *testing.T) {
	class := func(method, path, model string) uint8 {
		return classOf(prompt.KindOf(method, path), method, path, model)
	}
	chats, images := class("POST", "/v1/chat/completions", "m"), class("POST", "/v1/images/generations", "m")
	for _, other := range []string{"/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages", "/tokenize", "/score"} {
		if chats == class("POST", other, "m") {
			t.Errorf("chats share a class with %s", other)
		}
	}
	if chats == class("POST", "/v1/chat/completions", "adapter") {
		t.Error("two models share a class")
	}
	if images != class("POST", "/v1/images/edits", "m") {
		t.Error("images have two classes")
	}
	if images == class("POST", "/v1/audio/speech", "m") && images == class("POST", "/v1/videos", "m") {
		t.Error("all that has no kind shares a class")
	}
	if class("POST", "/v1/files", "") == class("GET", "/v1/files", "") {
		t.Error("what a GET is refused says nothing of a POST")
	}
	for i := range 5000 { // that a client makes up
		odd := fmt.Sprintf("/v1/%d/x", i)
		if c := class("GET", odd, odd); c < 8*prompt.Kinds || c >= worker.Classes {
			t.Fatalf("%s has class %d, as a kind has", odd, c)
		}
	}
}
