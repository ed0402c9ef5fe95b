package exchange

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// TestSignOf: what an answer shows against its worker, by its status, its Content-Type and its text.
func TestSignOf(t *testing.T) {
	r := &admission.Request{In: &message.Inbound{Body: []byte(`{"prompt":"what is EngineCore?"}`)}}
	r.Read.Req = &prompt.Request{Kind: prompt.Chat}
	content, text := "application/json", `{}`
	f := func(status int, want judge.Kind) {
		t.Helper()
		x := &upstream.Response{Status: status, Header: upstream.Header{{Name: "Content-Type", Value: content}}}
		got := signOf(r, x, []byte(text))
		if got.Kind != want || got.Rejected != (status >= 400 && want == judge.Answered) {
			t.Errorf("%d, %s, %s: %+v; want kind %d", status, content, text, got, want)
		}
	}
	f(200, judge.Answered)
	for _, status := range []int{400, 402, 409, 410, 413, 415, 421, 424, 501} {
		f(status, judge.Answered)
	}
	for _, status := range []int{408, 425, 429, 503, 529} {
		f(status, judge.Busy)
	}
	for _, status := range []int{401, 403, 404, 405, 422} {
		f(status, judge.Denied)
	}
	for _, status := range []int{500, 502, 504} {
		f(status, judge.Failed)
	}
	text = `{"error":{"message":"EngineCore encountered an issue. See stack trace"}}`
	f(500, judge.Dying)
	f(502, judge.Failed) // of a balancer
	r.In.Body = []byte(`{"prompt":"EngineCore encountered an issue: why?"}`)
	f(500, judge.Failed) // the client's own words
	text = `{"error":{"message":"cannot schedule new futures after shutdown"}}`
	f(500, judge.Dying)

	content = "Text/HTML; charset=utf-8"
	f(200, judge.Denied)
	f(400, judge.Answered)
	content = "application/json"
	f(302, judge.Denied)
	f(307, judge.Denied)
	r.Read.Req.Kind = prompt.Other // a page may be what was asked for, or stand elsewhere
	f(302, judge.Answered)
	content = "text/html"
	f(200, judge.Answered)
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
		if c := class("GET", odd, odd); c < 8*prompt.Kinds || c >= judge.Classes {
			t.Fatalf("%s has class %d, as a kind has", odd, c)
		}
	}
}

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
