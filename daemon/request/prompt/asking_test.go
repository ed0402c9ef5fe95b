package prompt

import "testing"

// TestAskUsage: a stream that does not ask for its usage does so with one edit, and no field comes twice. What engines
// refuse stays as it is.
func TestAskUsage(t *testing.T) {
	f := func(kind Kind, body, want string) {
		t.Helper()
		var p Parser
		r, err := p.Parse(kind, []byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		e, ok := r.AskUsage()
		got := "asks"
		if ok {
			got = body[:e.Lo] + string(e.Text) + body[e.Hi:]
		} else if !r.IncludeUsage {
			got = ""
		}
		if got != want {
			t.Errorf("%v %s: %q; want %q", kind, body, got, want)
		}
	}
	f(Chat, `{"stream":true}`, `{"stream":true,"stream_options":{"include_usage":true}}`)
	f(Completion, `{"stream": true , "n":2}`, `{"stream": true,"stream_options":{"include_usage":true} , "n":2}`)
	f(Tokens, `{"stream":true}`, `{"stream":true,"stream_options":{"include_usage":true}}`)
	f(Chat, `{"stream_options":{},"stream":true}`, `{"stream_options":{"include_usage":true},"stream":true}`)
	f(Chat, `{"stream":true,"stream_options": { } }`, `{"stream":true,"stream_options": {"include_usage":true } }`)
	f(Chat, `{"stream":true,"stream_options":null}`, `{"stream":true,"stream_options":{"include_usage":true}}`)
	f(Chat, `{"stream":true,"stream_options":{"continuous_usage_stats":true}}`, `{"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`)
	f(Chat, `{"stream":true,"stream_options":{"a":{},"include_usage":false}}`, `{"stream":true,"stream_options":{"a":{},"include_usage":true}}`)
	for _, no := range []string{"false", "null", "0", "0.0"} {
		f(Chat, `{"stream":true,"stream_options":{"include_usage":`+no+`,"a":1}}`, `{"stream":true,"stream_options":{"include_usage":true,"a":1}}`)
	}
	f(Chat, `{"stream":true,"stream_options":{"include_usage":true}}`, "asks")
	for _, yes := range []string{"1", `"true"`, `"YES"`} {
		f(Chat, `{"stream":true,"stream_options":{"include_usage":`+yes+`}}`, "")
	}
	f(Chat, `{"stream":true,"stream_options":{"include_usage":true},"stream_options":{}}`, `{"stream":true,"stream_options":{"include_usage":true},"stream_options":{"include_usage":true}}`)
	f(Chat, `{"stream":true,"stream_options":{"include_usage":"maybe"}}`, "")
	f(Chat, `{"stream":true,"stream_options":"usage"}`, "")
	f(Chat, `{"stream":true,"stream_options":[]}`, "")
	f(Chat, `{"stream":false}`, "")
	f(Chat, `{}`, "")
	f(Invocations, `{"messages":[{"role":"user","content":"x"}],"stream":true}`, `{"messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true}}`)
	for _, kind := range []Kind{Responses, Messages, Embedding, Other} {
		f(kind, `{"stream":true}`, "")
	}
}
