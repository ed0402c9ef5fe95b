package prompt

import (
	"strings"
	"testing"
)

// TestUnknownIsOutput: what no reader knows is output, and what stands for nothing is not.
func TestUnknownIsOutput(t *testing.T) {
	f := func(kind Kind, want string, events ...string) {
		t.Helper()
		if got := steps(kind, events...); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", strings.Join(events, "\n"), got, want)
		}
	}
	piece := func(d string) string { return `{"choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` }
	role := piece(`{"role":"assistant","content":"","name":"x","tool_calls":[],"refusal":null,"audio":null,"function_call":{},"annotations":[],"x":false,"y":""}`)
	for _, d := range []string{`{"audio":{"id":"a","data":"UklGRg=="}}`, `{"images":[{"type":"image_url"}]}`, `{"annotations":[{}]}`,
		`{"function_call":{"name":"f"}}`, `{"reasoning_details":[{"text":"x"}]}`, `{"x":1}`, `{"x":true}`, `{"reasoning":{"text":"x"}}`} {
		f(Chat, "ofc Ofc", role, piece(d))
	}
	f(Chat, "ofc Ofc", role, `{"object":"chat.completion.audio","data":"x"}`)
	f(Chat, "ofc Ofc", role, `{"type":"queue","place":3}`)
	f(Chat, "ofc ofc ofc", role, `{}`, `{"choices":[]}`)
	f(Chat, "ofc ofc ofc oFC", role, `{"type":"ping"}`, `{"usage":null}`, "[DONE]")
	f(Chat, "ofc oFc", role, `{"object":"error","code":503}`)
	f(Chat, "ofc oFc", role, "event: error\ndata: {\"x\":1}")
	f(Completion, "Ofc", `{"object":"text_completion.status","place":1}`)

	start := `{"type":"message_start","message":{"id":"m","type":"message","usage":{"input_tokens":1}}}`
	block := func(b string) string { return `{"type":"content_block_start","content_block":` + b + `,"index":0}` }
	part := func(d string) string { return `{"type":"content_block_delta","delta":` + d + `,"index":0}` }
	f(Messages, "ofc Ofc", start, block(`{"type":"server_tool_use","id":"1","name":"web_search","input":{}}`))
	f(Messages, "ofc Ofc", start, block(`{"type":"redacted_thinking","data":"x"}`))
	f(Messages, "ofc ofc Ofc", start, block(`{"type":"thinking","thinking":""}`), part(`{"type":"signature_delta","signature":"x"}`))
	f(Messages, "ofc ofc ofc ofc", start, block(`{"type":"text","text":"","citations":null}`), part(`{"type":"text_delta","text":""}`),
		`{"type":"content_block_stop","index":0}`)
	f(Messages, "ofc ofc Ofc", start, block(`{"type":"text","text":""}`), part(`{"type":"citations_delta","citation":{"url":"u"}}`))
	f(Messages, "ofc Ofc", start, `{"type":"something_new"}`)
	f(Messages, "ofc ofc oFC", start, `{"type":"ping"}`, `{"type":"message_stop"}`)

	created := `{"response":{"id":"resp_1","status":"in_progress","output":[]},"type":"response.created"}`
	event := func(kind, more string) string { return `{"type":"response.` + kind + `","output_index":0` + more + `}` }
	f(Responses, "ofc ofc ofc", created, event("in_progress", ""), event("queued", ""))
	f(Responses, "ofc Ofc", created, event("output_item.added", `,"item":{"type":"web_search_call","status":"in_progress"}`))
	f(Responses, "ofc Ofc", created, event("web_search_call.searching", ""))
	f(Responses, "ofc Ofc", created, event("mcp_call.in_progress", ""))
	f(Responses, "ofc Ofc", created, event("audio.delta", `,"delta":{"data":"x"}`))
	f(Responses, "ofc ofc", created, event("audio.delta", `,"delta":""`))
	f(Responses, "ofc ofc ofc", created, event("output_item.added", `,"item":{"type":"reasoning","summary":[]}`), event("reasoning_part.added", `,"part":{"text":""}`))
	f(Responses, "ofc ofc ofc ofc ofc oFC", created, event("output_item.added", `,"item":{"type":"message","content":[]}`),
		event("content_part.added", ""), event("output_text.done", `,"text":""`), event("content_part.done", ""),
		`{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"output_tokens":0}}}`) // aborted
}

// TestPinged: which events only keep connections alive. They are no output.
func TestPinged(t *testing.T) {
	f := func(kind Kind, want bool, event string) {
		t.Helper()
		r := NewReply(kind, true, 0)
		r.Feed([]byte("data: " + event + "\n\n"))
		if r.Pinged() != want || r.Output() {
			t.Errorf("%s: pinged %v, output %v; want %v", event, r.Pinged(), r.Output(), want)
		}
		if r.Reset(kind, true, 0); r.Pinged() {
			t.Errorf("%s: the next answer has been pinged", event)
		}
	}
	f(Messages, true, `{"type":"ping"}`)
	f(Responses, true, `{"type":"keepalive","sequence_number":3}`)
	f(Chat, true, `{"type":"ping"}`)
	f(Messages, false, `{"type":"message_start","message":{"id":"ping"}}`)
	f(Chat, false, `{"choices":[],"type":"ping"}`)
	f(Chat, false, `{"choices":[{"index":0,"delta":{"role":"assistant"}}]}`)
}
