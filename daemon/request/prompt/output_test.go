package prompt

import (
	"fmt"
	"strings"
	"testing"
)

// verdict is what a reply reports of an answer as a whole.
func verdict(r *Reply) string {
	ok, complete := r.Finish()
	return fmt.Sprintf("%v %v %v %d %v %v %v", ok, complete, r.Failed(), r.FailedCode(), r.Output(), r.Clean(), r.Usage())
}

// steps feeds a stream event by event and lists after each what the reply reports: o(utput), f(ailed), c(lean), each a
// capital when true.
func steps(kind Kind, events ...string) string {
	r := NewReply(kind, true, 0)
	var out []string
	for _, e := range events {
		if !strings.HasPrefix(e, ":") && !strings.HasPrefix(e, "event:") {
			e = "data: " + e
		}
		r.Feed([]byte(e + "\n\n"))
		s := ""
		for i, b := range []bool{r.Output(), r.Failed(), r.Clean()} {
			if b {
				s += "OFC"[i : i+1]
			} else {
				s += "ofc"[i : i+1]
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestOutputSoFar(t *testing.T) {
	f := func(kind Kind, want string, events ...string) {
		t.Helper()
		if got := steps(kind, events...); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", strings.Join(events, "\n"), got, want)
		}
	}
	role := `{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"prompt_token_ids":[1]}`
	piece := func(d string) string { return `{"choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` }
	finish := func(why string) string { return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + why + `"}]}` }
	usage := `{"choices":[],"usage":{"prompt_tokens":1}}`
	f(Chat, "ofc ofc Ofc OfC", role, usage, finish("stop"), "[DONE]")
	f(Chat, "ofc Ofc Ofc Ofc OfC", role, piece(`{"content":"a"}`), piece(`{"content":"b"}`), finish("length"), "[DONE]")
	f(Chat, "ofc Ofc", ": ping", piece(`{"reasoning":"hm"}`))
	f(Chat, "ofc Ofc", role, piece(`{"reasoning_content":"hm"}`))
	f(Chat, "ofc Ofc", piece(`{"tool_calls":[]}`), piece(`{"tool_calls":[{"index":0,"function":{"name":"f"}}]}`))
	f(Chat, "ofc oFc oFC", role, finish("abort"), "[DONE]")
	f(Chat, "ofc oFc", role, finish("error"))
	f(Chat, "Ofc OFc OFC", piece(`{"content":"a"}`), `{"error":{"code":500}}`, "[DONE]")
	f(Chat, "oFC", "[DONE]")
	f(Chat, "ofc oFC", usage, "[DONE]")
	f(Chat, "ofc oFC", role, "[DONE]")
	f(Chat, "oFc", "event: error\ndata: {}")
	f(Chat, "oFc", "event: error\ndata: boom")
	f(Chat, "oFc", `{"object":"error","message":"x","code":503}`)
	f(Chat, "Ofc", `{"choices":[`) // not understood: nothing to wait for
	f(Completion, "ofc Ofc", `{"choices":[{"index":0,"text":"","finish_reason":null}]}`, `{"choices":[{"index":0,"text":"","token_ids":[5]}]}`)
	f(Completion, "Ofc", `{"choices":[{"index":0,"text":"a"}]}`)
	f(Other, "ofc Ofc OfC", ": ping", `{"text":"la"}`, "[DONE]")
	f(Other, "oFC", "[DONE]")
}

func TestOutputSoFarOfMessages(t *testing.T) {
	f := func(want string, events ...string) {
		t.Helper()
		if got := steps(Messages, events...); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", strings.Join(events, "\n"), got, want)
		}
	}
	start := "event: message_start\n" + `data: {"type":"message_start","message":{"id":"m","type":"message","usage":{"input_tokens":1,"output_tokens":0}}}`
	block := func(b string) string { return `{"type":"content_block_start","content_block":` + b + `,"index":0}` }
	delta := func(d string) string { return `{"type":"content_block_delta","delta":` + d + `,"index":0}` }
	stop := func(why string) string {
		return `{"type":"message_delta","delta":{"stop_reason":` + why + `},"usage":{"output_tokens":0}}`
	}
	end := `{"type":"message_stop"}`
	f("ofc ofc ofc Ofc Ofc OfC", start, `{"type":"ping"}`, block(`{"type":"text","text":""}`), delta(`{"type":"text_delta","text":"a"}`), stop(`"end_turn"`), end)
	f("ofc ofc Ofc", start, block(`{"type":"thinking","thinking":""}`), delta(`{"type":"thinking_delta","thinking":"hm"}`))
	f("ofc Ofc", start, block(`{"type":"tool_use","id":"t","name":"f","input":{}}`))
	f("ofc Ofc", start, stop(`"max_tokens"`))
	f("ofc oFc oFC", start, stop(`null`), end) // aborted
	f("oFC", end)                              // a draining worker: the chat behind it sent only [DONE]
	f("oFc", "[DONE]")
	f("ofc oFc", start, `{"type":"error","error":{"type":"internal_error","message":"x"}}`)
	f("ofc oFc", start, "event: error\ndata: {\"type\":\"error\"}")
}

func TestOutputSoFarOfResponses(t *testing.T) {
	f := func(want string, events ...string) {
		t.Helper()
		if got := steps(Responses, events...); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", strings.Join(events, "\n"), got, want)
		}
	}
	body := func(kind, rest string) string {
		return `{"response":{"id":"resp_1","object":"response","error":null,` + rest + `},"type":"response.` + kind + `"}`
	}
	created := body("created", `"status":"in_progress","output":[],"usage":null`)
	added := `{"item":{"type":"message","content":[],"role":"assistant"},"type":"response.output_item.added"}`
	delta := func(kind, d string) string { return `{"delta":"` + d + `","type":"response.` + kind + `.delta"}` }
	f("ofc ofc ofc Ofc OfC", created, added, delta("output_text", ""), delta("output_text", "a"), body("completed", `"status":"completed","output":[],"usage":{"output_tokens":1}`))
	f("ofc Ofc", created, delta("reasoning_text", "hm"))
	f("ofc Ofc", created, `{"item":{"type":"function_call","name":"f","arguments":""},"type":"response.output_item.added"}`)
	f("ofc OfC", created, body("incomplete", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`))
	f("ofc oFC", created, body("completed", `"status":"completed","output":[],"usage":{"output_tokens":0}`)) // aborted
	f("ofc oFC", created, body("incomplete", `"status":"incomplete","output":[],"usage":{"output_tokens":0}`))
	f("ofc oFC", created, body("completed", `"status":"cancelled","output":[],"usage":{"output_tokens":3}`))
	f("ofc oFc", created, body("failed", `"status":"failed"`))
	f("ofc oFc", created, `{"type":"error","code":"server_error","message":"x"}`)
	f("ofc oFc", created, `{"error":{"code":500,"message":"x"}}`)
	f("oFc", "[DONE]")
}

func TestFailureInBody(t *testing.T) {
	f := func(kind Kind, body, want string) {
		t.Helper()
		r := NewReply(kind, false, 0)
		r.Body([]byte(body))
		if got := verdict(r); !strings.HasPrefix(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
	f(Chat, `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"},{"index":1,"message":{"content":""},"finish_reason":"abort"}]}`, "false false true 0 true")
	f(Chat, `{"choices":[{"index":0,"message":{"content":""},"finish_reason":"abort"}]}`, "false false true 0 false")
	f(Chat, `{"error":{"message":"x","code":"503"}}`, "false false true 503 false")
	f(Chat, `{"error":{"message":"x","code":"invalid_api_key"}}`, "false false true 0 false")
	f(Chat, `{"error":"x"}`, "false false true 0 false")
	f(Chat, `{"object":"error","message":"x","code":404}`, "false false true 404 false")
	for _, kind := range []Kind{Other, Embedding, Rerank, Score, Tokenize, CountTokens} {
		f(kind, `{"error":{"message":"x","code":400}}`, "false false true 400 false true")
		f(kind, `{"error":null}`, "true false false 0 true true")
		f(kind, `[1]`, "true false false 0 true true")
		f(kind, `{"data":[[-1.5,2],[3 , 4.0e5]],"x":[1],"y":[],"error":{"code":7}}`, "false false true 7 false true")
		f(kind, `{"x":[1`, "false false false 0 true false")
		f(kind, `RIFF`, "false false false 0 true false")
	}
	f(Embedding, `{"data":[{"index":0,"embedding":[0.1,-2e-3]}],"usage":{"prompt_tokens":4,"total_tokens":4,"completion_tokens":0}}`, "true false false 0 true true {4 0 0 false true}")
	f(Rerank, `{"results":[],"usage":{"total_tokens":56}}`, "true false false 0 true true {56 0 0 false true}")
	f(Messages, `{"type":"message","content":[],"stop_reason":null}`, "false false true 0 false")
	f(Messages, `{"type":"error","error":{"type":"x","message":"y"}}`, "false false true 0 false")
	f(Messages, `{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2,"cache_creation_input_tokens":192,"cache_read_input_tokens":64}}`,
		"true true false 0 true true {259 2 64 true true}")
	f(Responses, `{"object":"response","status":"completed","output":[],"usage":{"input_tokens":3,"output_tokens":0}}`, "false false true 0 false")
	f(Responses, `{"object":"response","status":"queued","output":[],"usage":null}`, "true false false 0 false")
	f(Responses, `{"object":"response","status":"failed","error":{"code":"server_error"}}`, "false false true 500 false")
	f(Responses, `{"object":"response","status":"completed","output":[{"type":"reasoning"}],"usage":{"input_tokens":8,"output_tokens":4,"input_tokens_details":{"cached_tokens":6}}}`,
		"true true false 0 true true {8 4 6 true true}")
}

// TestNamedErrors: an error whose code is no number has the status that its type or its code names.
func TestNamedErrors(t *testing.T) {
	f := func(kind Kind, body string, code int) {
		t.Helper()
		whole, event := NewReply(kind, false, 0), NewReply(kind, true, 0)
		whole.Body([]byte(body))
		event.Feed([]byte("data: " + body + "\n\n"))
		for _, r := range []*Reply{whole, event} {
			if got := r.FailedCode(); got != code || !r.Failed() || !r.ReportedError() || r.Output() {
				t.Errorf("%s\nfailed %v, code %d, output %v; want true, %d, false", body, r.Failed(), got, r.Output(), code)
			}
		}
	}
	for name, code := range errorStatus {
		f(Chat, `{"error":{"message":"x","type":"`+name+`","param":null,"code":null}}`, code)
		f(Embedding, `{"error":{"type":"`+name+`"}}`, code)
		f(Completion, `{"object":"error","message":"x","type":"`+name+`"}`, code)
		f(Messages, `{"type":"error","error":{"type":"`+name+`","message":"x"}}`, code)
		f(Responses, `{"type":"error","code":"`+name+`","message":"x"}`, code)
	}
	f(Chat, `{"error":{"code":503,"type":"BadRequestError"}}`, 503) // a number says it exactly
	f(Chat, `{"error":{"type":"BadRequestError","code":"503"}}`, 503)
	f(Chat, `{"error":{"type":"BadRequestError","code":"model_not_found"}}`, 400)
	f(Chat, `{"error":{"type":"EngineDeadError","code":"x"}}`, 0)
	f(Chat, `{"error":{"type":{"BadRequestError":1},"code":[400]}}`, 0)
	f(Chat, `{"error":{}}`, 0)
	f(Chat, `{"error":"BadRequestError"}`, 0)
}

func TestReplyID(t *testing.T) {
	f := func(kind Kind, stream bool, body, want string) {
		t.Helper()
		r := NewReply(kind, stream, 0)
		r.Feed([]byte(body))
		if r.Finish(); r.ID() != want {
			t.Errorf("%s: %q, want %q", body, r.ID(), want)
		}
	}
	f(Responses, true, "data: {\"response\":{\"id\":\"resp_1\"},\"type\":\"response.created\"}\n\n", "resp_1")
	f(Responses, false, `{"id":"resp_1","output":[{"id":"msg_1"}]}`, "resp_1")
	f(Messages, true, "data: {\"type\":\"message_start\",\"message\":{\"id\":\"chatcmpl-1\"}}\n\n", "chatcmpl-1")
	f(Messages, false, `{"id":"msg_1","content":[{"type":"tool_use","id":"t"}]}`, "msg_1")
	f(Chat, true, "data: {\"id\":\"a\",\"choices\":[]}\n\ndata: {\"id\":\"b\",\"choices\":[]}\n\n", "a")
	f(Completion, false, `{"id":"cmpl-\u0031"}`, "cmpl-1")
	f(Chat, false, `{"id":"`+strings.Repeat("x", maxID+1)+`"}`, "")
}
