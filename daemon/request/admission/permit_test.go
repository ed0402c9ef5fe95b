package admission

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

func read(t *testing.T, in *message.Inbound, model string) *Reading {
	t.Helper()
	r := new(Reading)
	r.Parse(in, model)
	t.Cleanup(r.release)
	return r
}

func TestReading(t *testing.T) {
	f := func(in *message.Inbound, model, named, routed string, clear bool) {
		t.Helper()
		r := read(t, in, model)
		if r.named != named || r.Req.Model != routed || r.Clear != clear {
			t.Errorf("%s %.60s: names %q, goes by %q, clear %v; want %q, %q, %v", in.Path, in.Body, r.named, r.Req.Model, r.Clear,
				named, routed, clear)
		}
	}
	const chat = "/v1/chat/completions"
	f(inbound("POST", chat, `{"model":"a","messages":[]}`), "", "a", "a", true)
	f(inbound("POST", chat, `{"model":"a","messages":[]}`), "b", "a", "b", true) // a header names the model to route by
	f(inbound("POST", chat, `{"model":"a",`), "", "a", "a", false)
	f(inbound("POST", chat, ``), "b", "", "b", false)
	form := "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n--x--\r\n"
	f(inbound("POST", "/v1/audio/transcriptions", form, "Content-Type", "multipart/form-data; boundary=x"), "", "whisper", "whisper", true)
	f(inbound("POST", "/v1/audio/transcriptions", form[:60], "Content-Type", "multipart/form-data; boundary=x"), "", "", "", false)
	if r := read(t, inbound("POST", "/invocations", `{"messages":[{"role":"user","content":"hi"}]}`), ""); r.Req.Kind != prompt.Chat {
		t.Errorf("a body of /invocations with messages is %v", r.Req.Kind)
	}
}

// TestReadingForbids is the table of what a key for the model sim refuses. The daemon's TestAKeysModelsHold has the
// bodies.
func TestReadingForbids(t *testing.T) {
	bob, tail := callerOf(t, "sim", "org/*"), message.Tail(&rest{})
	f := func(code string, in *message.Inbound) {
		t.Helper()
		in.Caller = bob
		got := ""
		if fault := read(t, in, "").forbids(in); fault != nil {
			got = fault.Code
		}
		if got != code {
			t.Errorf("%s %s %.60s %v: %q; want %q", in.Method, in.Path, in.Body, in.Header, got, code)
		}
		in.Caller = anybody()
		if fault := read(t, in, "").forbids(in); fault != nil {
			t.Errorf("%s %s %.60s: without a key %q", in.Method, in.Path, in.Body, fault.Code)
		}
	}
	chat := func(body string, header ...string) *message.Inbound {
		return inbound("POST", "/v1/chat/completions", body, header...)
	}
	const good = `{"model":"sim","messages":[]}`
	f("", chat(good))
	f("", chat(`{"model":"org/a","messages":[]}`))
	f("model_not_found", chat(`{"model":"secret","messages":[]}`))
	f("missing_model", chat(`{"messages":[]}`))
	f("missing_model", chat(``))
	f("invalid_json", chat(`{"model":"sim"`))
	f("ambiguous_model", chat(`{"model":"secret","model":"sim"}`))
	f("ambiguous_model", chat(`{"model":"sim","Model":"secret"}`))
	f("", chat(good, "Content-Type", "application/json; charset=UTF-8"))
	f("", chat(good, "Content-Type", `application/json; charset="utf-8"`))
	f("unsupported_media_type", chat(good, "Content-Type", "application/json; charset=utf-7"))
	f("unsupported_media_type", chat(good, "Content-Type", "application/json", "content-type", "text/plain"))
	f("unsupported_media_type", chat(good, "Content-Type", "application/x-www-form-urlencoded"))
	f("unsupported_media_type", chat(good, "Content-Type", "multipart/mixed; boundary=x"))
	f("ambiguous_form", chat(good, "Content-Type", "multipart/form-data; boundary=x"))
	f("model_not_found", chat(good, "x-amzn-sagemaker-adapter-identifier", "secret"))
	f("", chat(good, "X-Amzn-SageMaker-Adapter-Identifier", "org/b"))
	f("adapter_not_allowed", inbound("POST", "/v1/load_lora_adapter", good))
	f("", inbound("GET", "/v1/responses/resp_1", ``)) // whose it is, is looked at for all keys
	f("missing_model", inbound("GET", "/v1/files", ``))
	long := chat(good)
	long.Tail = tail
	f("body_too_large", long)
}

func TestReadingHidesResponse(t *testing.T) {
	bob := callerOf(t, "*")
	f := func(code string, in *message.Inbound, target string) {
		t.Helper()
		got := ""
		if fault := read(t, in, "").hidesResponse(in, target); fault != nil {
			got = fault.Code
		}
		if got != code {
			t.Errorf("%s %s at %s: %q; want %q", in.Method, in.Body, target, got, code)
		}
	}
	keyed := func(method, body string, tail message.Tail) *message.Inbound {
		in := inbound(method, "/v1/responses", body)
		in.Caller, in.Tail = bob, tail
		return in
	}
	const at = "/v1/responses"
	f("", keyed("POST", `{"model":"a","input":"hi"}`, nil), at)
	f("", keyed("POST", ``, nil), at)
	f("invalid_json", keyed("POST", `{"model":"a","previous_response_id":"resp_`, nil), at)
	f("", keyed("POST", `{"model":"a","previous_response_id":"resp_`, nil), "/v1/chat/completions")
	f("body_too_large", keyed("POST", `{`, &rest{}), at)
	f("", keyed("GET", `{`, &rest{}), at)
	open := keyed("POST", `{`, &rest{})
	open.Caller = anybody()
	f("", open, at)
}

func TestTooLongToTokenize(t *testing.T) {
	f := func(path string, bytes int, tail message.Tail, want bool) {
		t.Helper()
		in := inbound("POST", path, `{"prompt":"`+strings.Repeat("a", bytes-len(`{"prompt":""}`))+`"}`)
		in.Tail = tail
		if got := read(t, in, "").tooLongToTokenize(in); got != want {
			t.Errorf("%s, %d bytes: %v", path, bytes, got)
		}
	}
	f("/tokenize", maxTokenize, nil, false)
	f("/tokenize", maxTokenize+1, nil, true)
	f("/tokenize", 20, &rest{}, true)
	f("/v1/completions", maxTokenize+1, nil, false)
}
