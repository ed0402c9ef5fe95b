package attempt

import (
	"testing"

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
