package prompt

import "testing"

// Anthropic's messages are the chat that vLLM makes of them.
func TestMessagesAreAChat(t *testing.T) {
	f := func(messages, chat string, want bool) {
		t.Helper()
		a, b := parse(t, Messages, messages).Chains[0], parse(t, Chat, chat).Chains[0]
		if got := same(a, b); got != want {
			t.Errorf("same text: %v, want %v\n%s\n%s", got, want, messages, chat)
		}
	}
	user := `{"role":"user","content":"` + padding + `"}`
	f(`{"messages":[`+user+`]}`, `{"messages":[`+user+`]}`, true)
	chat := `{"messages":[{"role":"system","content":"s\nt"},` + user + `]}`
	f(`{"messages":[`+user+`],"system":"s\nt"}`, chat, true)
	f(`{"system":[{"type":"text","text":"s\n","cache_control":{"type":"ephemeral"}},{"type":"text","text":"t"}],"messages":[`+user+`]}`, chat, true)
	f(`{"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},{"type":"text","text":"s\nt"}],"messages":[`+user+`]}`, chat, true)
	f(`{"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"}],"messages":[`+user+`]}`, `{"messages":[`+user+`]}`, true)
	f(`{"system":[],"messages":[`+user+`]}`, `{"messages":[`+user+`]}`, true)
	f(`{"system":"x","messages":[`+user+`]}`, chat, false)

	called := `{"messages":[{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},` +
		`{"role":"tool","tool_call_id":"1","content":"r"},` + user + `]}`
	use := `{"type":"tool_use","id":"1","name":"f","input":{"x": 1}}`
	f(`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"},`+use+`]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"}]},`+user+`]}`, called, true)
	f(`{"messages":[{"role":"assistant","content":[`+use+`,{"text":"a","type":"text"}]},`+
		`{"role":"user","content":[{"type":"text","text":"`+padding+`"},{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r"}]}]}]}`, called, true)
	f(`{"messages":[{"role":"assistant","content":[{"type":"text","text":"a"},`+use+`]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"2","content":"r"}]},`+user+`]}`, called, false)

	tools := `{"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}],"messages":[` + user + `]}`
	f(`{"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}],"messages":[`+user+`]}`, tools, true)
	f(`{"tools":[{"type":"custom","input_schema":{"type":"object"},"name":"f","description":"d"}],"messages":[`+user+`]}`, tools, true)
	f(`{"tools":[{"name":"g","description":"d","input_schema":{"type":"object"}}],"messages":[`+user+`]}`, tools, false)
	typed := func(fields string) string { return `{"tools":[{` + fields + `}],"messages":[` + user + `]}` }
	space := typed(`"type":"namespace","name":"agents","description":"d","tools":[{"type":"function","name":"spawn"}]`)
	f(typed(`"type":"namespace","name":"agents","description":"d","tools":[{"type":"function","name":"wait"}]`), space, false)
	f(typed(`"type": "namespace", "name":"\u0061gents","description":"d","tools":[{"type":"function","name":"spawn"}]`), space, true)
	f(typed(`"type":"bash_20250124","name":"bash","restart":true`), typed(`"type":"bash_20250124","name":"bash"`), false)
	f(typed(`"type":"custom","name":"patch","description":"d","format":{"type":"grammar"}`),
		typed(`"type":"custom","name":"patch","description":"d","format":{"type":"text"}`), false)
	f(typed(`"type":"function","description":"d","name":"f","parameters":{"type":"object"}`),
		typed(`"name":"f","parameters":{"type":"object"},"type":"function","description":"d"`), true)
}

// A prefill is joined by the client with what comes after it.
func TestPrefillIsNotContinued(t *testing.T) {
	f := func(last string, want bool) {
		t.Helper()
		c := parse(t, Messages, `{"messages":[{"role":"user","content":"q"},`+last+`]}`).Chains[0]
		r := NewReply(Messages, false, 0)
		r.Body([]byte(`{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}`))
		if r.Finish(); r.ExtendChoice(&c, 0) != want {
			t.Errorf("%s: continued %v, want %v", last, !want, want)
		}
	}
	f(`{"role":"user","content":"p"}`, true)
	f(`{"role":"assistant","content":"p"}`, false)
}

func TestItems(t *testing.T) {
	f := func(a, b string, want bool) {
		t.Helper()
		x, y := parse(t, Responses, a).Chains[0], parse(t, Responses, b).Chains[0]
		if got := same(x, y); got != want {
			t.Errorf("same text: %v, want %v\n%s\n%s", got, want, a, b)
		}
	}
	in := func(items string) string { return `{"input":[` + items + `]}` }
	f(`{"input":"q"}`, in(`{"role":"user","content":"q"}`), true)
	f(`{"input":"q"}`, in(`{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]}`), true)
	f(`{"input":"q","instructions":"s"}`, in(`{"role":"system","content":"s"},{"role":"user","content":"q"}`), true)
	f(`{"input":"q","instructions":""}`, `{"input":"q"}`, true)
	said := `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`
	call := `{"type":"function_call","call_id":"1","name":"f","arguments":"{\"x\":1}"}`
	result := `{"type":"function_call_output","call_id":"1","output":"r"}`
	f(in(said+`,`+call+`,`+result), in(`{"type":"reasoning","summary":[]},`+said+`,{"type":"function_call","name":"f","arguments":"{\"x\": 1}","call_id":"2"},`+result), true)
	f(in(said+`,`+call+`,`+result), in(call+`,`+said+`,`+result), true) // one message of the assistant
	f(in(said+`,`+call+`,`+result), in(said+`,`+result), false)
	f(in(said+`,`+call+`,`+result), in(said+`,`+call+`,{"type":"function_call_output","call_id":"1","output":"x"}`), false)
	f(in(said+`,`+call+`,`+said), in(said+`,`+said+`,`+call), false) // the second text begins a message
	f(in(`{"type":"web_search_call","id":"1"}`), in(`{"id":"1","type":"web_search_call"}`), false)
	f(in(`{"type":"web_search_call","id":"1"}`), in(`{"type": "web_search_call", "id": "\u0031"}`), true)
	image := func(u string) string {
		return in(`{"role":"user","content":[{"type":"input_image","image_url":"` + u + `"}]}`)
	}
	f(image("a"), image("a"), true)
	f(image("a"), image("b"), false)
	last := func(status string) bool {
		return parse(t, Responses, in(`{"role":"user","content":"q"},{"type":"message","role":"assistant","status":"`+status+`","content":"a"}`)).Chains[0].fixed
	}
	if last("completed") || !last("incomplete") {
		t.Errorf("a message in progress is to be gone on with, one that is completed is not")
	}
}
