package prompt

import "testing"

const padding = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func TestCanonicalSame(t *testing.T) {
	f := func(a, b string, want bool) {
		t.Helper()
		x, y := parse(t, Chat, a), parse(t, Chat, b)
		if got := same(x.Chains[0], y.Chains[0]); got != want {
			t.Errorf("same text: %v, want %v\n%s\n%s", got, want, a, b)
		}
	}
	msg := func(m string) string { return `{"messages":[` + m + `,{"role":"user","content":"` + padding + `"}]}` }
	g := func(a, b string, want bool) { t.Helper(); f(msg(a), msg(b), want) }

	g(`{"role":"user","content":"é\n/"}`, `{ "content" : "\u00E9\u000a\/" , "role" : "us\u0065r" }`, true)
	g(`{"role":"user","content":"a"}`, `{"role":"user","content":"b"}`, false)
	g(`{"role":"user","content":"a"}`, `{"role":"system","content":"a"}`, false)
	g(`{"role":"user","content":"a"}`, `{"role":"user","content":[{"text":"a","type":"text"}]}`, true)
	g(`{"role":"user","content":"a"}`, `{"role":"user","content":["a"]}`, true)
	g(`{"role":"user","content":"ab"}`, `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, false)
	g(`{"role":"user","content":"a"}`, `{"role":"user","content":[{"type":"text","text":"","citations":null},{"annotations":[],"type":"text","text":"a"}]}`, true)
	g(`{"role":"user","content":"a","name":"bob"}`, `{"role":"user","content":"a"}`, false)
	g(`{"role":"user","content":"a","name":null}`, `{"role":"user","content":"a"}`, true)
	g(`{"role":"user","content":"a","metadata":{"x":1}}`, `{"role":"user","content":"a"}`, true)
	g(`{"role":"assistant","content":"a","reasoning_content":"hm","reasoning":"hm"}`, `{"role":"assistant","content":"a"}`, true)
	g(`{"role":"tool","content":"a","tool_call_id":"1"}`, `{"role":"tool","content":"a","tool_call_id":"2"}`, false)
	// the fields cannot run into each other
	g(`{"role":"user","name":"ab","content":"c"}`, `{"role":"user","name":"a","content":"bc"}`, false)
	g(`{"role":"user","content":"a"},{"role":"user","content":"b"}`, `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, false)

	call := func(c, rest string) string {
		return `{"role":"assistant",` + rest + `"tool_calls":[` + c + `]}`
	}
	one := `{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\": [1, \"b c\"]}"}}`
	g(call(one, ``), call(one, `"content":null,`), true)
	g(call(one, ``), call(one, `"content":"",`), true)
	g(call(one, ``), call(one, `"content":"x",`), false)
	g(call(one, ``), call(`{"function":{"arguments":"{\"a\":[1,\"b c\"]}","name":"f"},"type":"function","id":"y"}`, ``), true)
	g(call(one, ``), call(`{"function":{"arguments":{"a":[1,"b c"]},"name":"f"}}`, ``), true)
	g(call(one, ``), call(`{"function":{"name":"f","arguments":"{\"a\":[1,\"bc\"]}"}}`, ``), false)
	g(call(one, ``), call(`{"function":{"name":"g","arguments":"{\"a\":[1,\"b c\"]}"}}`, ``), false)
	g(call(one, ``), call(one+`,`+one, ``), false)
	g(call(`{"function":{"name":"f","arguments":""}}`, ``), call(`{"function":{"name":"f","arguments":"{}"}}`, ``), true)
	g(call(`{"function":{"name":"f","arguments":"not json {"}}`, ``), call(`{"function":{"name":"f","arguments":"not json"}}`, ``), false)
}

func TestCanonicalMedia(t *testing.T) {
	f := func(a, b string, want bool) {
		t.Helper()
		msg := func(p string) string {
			return `{"messages":[{"role":"user","content":[{"type":"text","text":"see"},` + p + `]},{"role":"user","content":"` + padding + `"}]}`
		}
		x, y := parse(t, Chat, msg(a)).Chains[0], parse(t, Chat, msg(b)).Chains[0]
		if got := same(x, y); got != want {
			t.Errorf("same text: %v, want %v\n%s\n%s", got, want, a, b)
		}
		if x.Bytes > 300 {
			t.Errorf("%d bytes of canonical text: media should count by its digest", x.Bytes)
		}
	}
	image := func(u string) string { return `{"type":"image_url","image_url":{"url":"` + u + `"}}` }
	f(image(`data:image\/png;base64,AAAA`), image(`data:image/png;base64,AAAA`), true)
	f(image(`data:image/png;base64,AAAA`), image(`data:image/png;base64,AAAB`), false)
	f(image(`http://x/a.png`), `{"image_url":{"detail":"low","url":"http://x/a.png"},"type":"image_url"}`, true)
	f(image(`http://x/a.png`), `{"image_url":"http://x/a.png","type":"image_url"}`, true)
	f(image(`http://x/a.png`), `{"type":"image_url","text":null,"image_url":{"url":"http://x/a.png"}}`, true)
	f(image(`http://x/a.png`), `{"type":"video_url","video_url":{"url":"http://x/a.png"}}`, false)
	f(`{"type":"input_audio","input_audio":{"data":"QUJD","format":"wav"}}`, `{"type":"input_audio","input_audio":{"data":"QUJE","format":"wav"}}`, false)
	f(`{"type":"image_url","image_url":null,"uuid":"1"}`, `{"type":"image_url","image_url":null,"uuid":"2"}`, false)
}

func TestCanonicalTools(t *testing.T) {
	f := func(a, b string, want bool) {
		t.Helper()
		body := func(tools string) string {
			return `{"tools":` + tools + `,"messages":[{"role":"user","content":"` + padding + `"}]}`
		}
		if got := same(parse(t, Chat, body(a)).Chains[0], parse(t, Chat, body(b)).Chains[0]); got != want {
			t.Errorf("same text: %v, want %v\n%s\n%s", got, want, a, b)
		}
	}
	tool := `[{"type":"function","function":{"name":"f","description":"d é","parameters":{"type":"object","properties":{"a":{"type":"string"},"b":{}}}}}]`
	f(tool, `[ { "function" : { "parameters" : {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}}, "description" : "d \u00e9",
		"name" : "f" }, "type" : "function" } ]`, true)
	// the worker prints parameters in the order in which they came
	f(tool, `[{"type":"function","function":{"name":"f","description":"d é","parameters":{"type":"object","properties":{"b":{},"a":{"type":"string"}}}}}]`, false)
	f(tool, `[]`, false)
	f(`null`, `[]`, true)
	f(`[{"type":"x","a":1}]`, `[{"type": "x", "a": 1}]`, true)
	f(`[{"type":"x","a":"b"}]`, `[{"type":"x","a":"c"}]`, false)
}
