package prompt

import (
	"bytes"
	"testing"
)

// TestAskUsage: a stream that does not ask for its usage does so and no field comes twice. What engines
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
			got = string(bytes.Join(Pieces([]byte(body), e), nil))
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
	f(Chat, `{"stream":true,"stream_options":{"include_usage":true},"stream_options":{}}`, `{"stream":true,"stream_options":{"include_usage":true}}`)
	f(Chat, `{"stream":true,"stream_options":{"include_usage":false,"include_us\u0061ge":null}}`, `{"stream":true,"stream_options":{"include_usage":true}}`)
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

// TestSetField: a field has one value afterwards, in whatever spelling it came and however often, and nothing else
// changes. Of a body that is cut short the end is not known.
func TestSetField(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                            `{"salt":"k"}`,
		`{ } `:                          `{"salt":"k" } `,
		`{"a":1}` + "\n":                `{"a":1,"salt":"k"}` + "\n",
		`{"salt": "x" ,"a":{"b":[1]}}`:  `{"salt": "k" ,"a":{"b":[1]}}`,
		`{"a":"salt","salt":null}`:      `{"a":"salt","salt":"k"}`,
		`{"salt":"x", "s\u0061lt":"y"}`: `{"salt":"k"}`,
		`{"a":1, "salt":1,"b":2 ,"salt":{"a":[]} }`: `{"a":1, "salt":"k","b":2 }`,
		`{"salt":1,"salt":2,"salt":3,"b":[1,2]}`:    `{"salt":"k","b":[1,2]}`,
		`{"a":{"salt":"y"}}`:                        `{"a":{"salt":"y"},"salt":"k"}`,
		`{"temperature":NaN,"salt":"x"} `:           `{"temperature":NaN,"salt":"k"} `,
		`{"prompt":"é\"","salt":"é\"","n":1}`:       `{"prompt":"é\"","salt":"k","n":1}`,
		`{"salt":"x","prompt":"and so`:              `{"salt":"k","prompt":"and so`,
		`{"prompt":"and so`:                         `{"prompt":"and so`,
		`[{"salt":1}]`:                              `[{"salt":1}]`,
		"\xef\xbb\xbf{\"a\":1}":                     "\xef\xbb\xbf{\"a\":1,\"salt\":\"k\"}",
	} {
		got := string(bytes.Join(Pieces([]byte(body), SetField([]byte(body), "salt", []byte(`"k"`))), nil))
		if got != want {
			t.Errorf("%s became %s, want %s", body, got, want)
		}
	}
}
