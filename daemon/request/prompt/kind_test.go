package prompt

import (
	"encoding/json"
	"os"
	"testing"
)

func TestKindOf(t *testing.T) {
	f := func(method, path string, want Kind) {
		t.Helper()
		if got := KindOf(method, path); got != want {
			t.Errorf("%s %s: %d, want %d", method, path, got, want)
		}
	}
	f("POST", "/v1/chat/completions", Chat)
	f("POST", "/v1/chat/completions/batch", Chat)
	f("POST", "/v1/chat/completions/render", Other)
	f("POST", "/v1/completions", Completion)
	f("POST", "/inference/v1/generate", Tokens)
	f("POST", "/v1/responses", Responses)
	f("GET", "/v1/responses", Other)
	f("POST", "/v1/responses/resp_1/cancel", Other)
	f("POST", "/v1/messages", Messages)
	f("POST", "/v1/messages/count_tokens", CountTokens)
	f("POST", "/v2/rerank", Rerank)
	f("POST", "/score", Score)
	f("POST", "/classify", Embedding)
	f("POST", "/v1/classify", Other)
	f("POST", "/detokenize", Other)
	f("POST", "/v1/audio/transcriptions", Other)
	f("POST", "/invocations", Invocations)
	f("post", "/invocations", Other)
}

func TestRequestsOfKinds(t *testing.T) {
	f := func(kind Kind, body string, check func(r *Request) bool) {
		t.Helper()
		if r := parse(t, kind, body); !check(r) {
			t.Errorf("%s: %+v", body, r)
		}
	}
	prompts := func(n int) func(r *Request) bool {
		return func(r *Request) bool { return len(r.Chains) == n && r.HasPrompt == (n > 0) }
	}
	f(Responses, `{"input":"a","max_output_tokens":5,"n":9}`, func(r *Request) bool { return r.MaxTokens == 5 && len(r.Chains) == 1 })
	f(Responses, `{"input":"a","previous_response_id":"resp_\u0031"}`, func(r *Request) bool { return r.PreviousResponse == "resp_1" && !r.HasPrompt })
	f(Responses, `{"input":"a","previous_response_id":null}`, func(r *Request) bool { return r.PreviousResponse == "" && r.HasPrompt })
	f(Responses, `{"input":[],"prompt":"x"}`, prompts(0))
	f(Responses, `{"input":[{"role":"user","content":"a"}],"input":"a"}`, func(r *Request) bool { return len(r.talk.messages) == 0 && r.HasPrompt })
	f(Messages, `{"messages":[{"role":"user","content":"a"}],"max_tokens":7,"metadata":{"user_id":"u"}}`,
		func(r *Request) bool {
			return r.MaxTokens == 7 && r.Name("metadata.user_id") == "u" && len(r.Chains) == 1
		})
	f(Chat, `{"messages":[[{"role":"user","content":"a"}],[{"role":"user","content":"b"},{"role":"user","content":"c"}],[]]}`, func(r *Request) bool {
		a, b := parse(t, Chat, `{"messages":[{"role":"user","content":"a"}]}`).Chains[0], parse(t, Chat, `{"messages":[{"role":"user","content":"b"},{"role":"user","content":"c"}]}`).Chains[0]
		return prompts(3)(r) && r.Chains[0].sum() == a.sum() && r.Chains[1].sum() == b.sum()
	})
	f(Chat, `{"messages":[[{"role":"user","content":"a"}]],"messages":[{"role":"user","content":"a"}]}`, func(r *Request) bool { return prompts(1)(r) && len(r.talk.starts) == 0 })
	f(Chat, `{"metadata":{"user_id":"u"}}`, func(r *Request) bool { return !r.Named() })
	f(Embedding, `{"input":"a"}`, prompts(1))
	f(Embedding, `{"input":["a","b"]}`, prompts(2))
	f(Embedding, `{"input":[1,2,3]}`, func(r *Request) bool { return r.Chains[0].Tokens == 3 })
	f(Embedding, `{"input":[[1,2],[3]]}`, prompts(2))
	f(Embedding, `{"messages":[{"role":"user","content":"a"}]}`, prompts(1))
	f(Embedding, `{"prompt":"a"}`, prompts(0))
	f(Rerank, `{"query":"a","documents":["b","c"]}`, prompts(1))
	f(Rerank, `{"query":"a"}`, prompts(0))
	f(Score, `{"text_1":"a","text_2":["b","c"]}`, prompts(1))
	f(Score, `{"queries":["a"],"documents":["b"]}`, prompts(1))
	f(Tokens, `{"token_ids":[1,2,3],"prompt":"a","max_tokens":1,"n":2,"prompt_logprobs":0}`,
		func(r *Request) bool {
			return r.Chains[0].Tokens == 3 && r.MaxTokens == 0 && r.N == 1 && !r.BypassesCache
		})
	f(Tokens, `{"max_tokens":1,"sampling_params":{"n":7,"max_tokens":3},"sampling_params":{"max_tokens":9,"prompt_logprobs":0},"max_tokens":1,"token_ids":[1]}`,
		func(r *Request) bool { return r.MaxTokens == 9 && r.N == 1 && r.BypassesCache })
	f(Tokens, `{"token_ids":[1],"sampling_params":null}`, prompts(1))
	f(Tokens, `{"token_ids":[1],"features":null}`, prompts(1))
	f(Tokens, `{"token_ids":[1],"features":{"mm_hashes":{"image":["a"]}}}`, prompts(0))
	f(Tokens, `{"prompt":[1]}`, prompts(0))
	f(Completion, `{"prompt":[1],"token_ids":[1,2],"sampling_params":{"max_tokens":9}}`,
		func(r *Request) bool { return r.Chains[0].Tokens == 1 && r.MaxTokens == 0 })
	f(Tokenize, `{"prompt":"a"}`, prompts(1))
	f(Tokenize, `{"messages":[{"role":"user","content":"a"}]}`, prompts(1))
	f(Other, `{"messages":[{"role":"user","content":"a"}],"prompt":"a","input":"a","query":"a","documents":["a"],"model":"m"}`,
		func(r *Request) bool { return !r.HasPrompt && r.Model == "m" })
	f(Invocations, `{"messages":[{"role":"user","content":"a"}],"prompt":"b"}`, func(r *Request) bool { return r.Kind == Chat && r.HasPrompt })
	f(Invocations, `{"prompt":"b"}`, func(r *Request) bool { return r.Kind == Completion && r.HasPrompt })
	f(Invocations, `{"input":["a","b"],"prompt":"c"}`, func(r *Request) bool { return r.Kind == Completion && len(r.Chains) == 1 })
	f(Invocations, `{"input":["a","b"]}`, func(r *Request) bool { return r.Kind == Embedding && len(r.Chains) == 2 })
	f(Invocations, `{"requestType":"NEW_SESSION"}`, func(r *Request) bool { return r.Kind == Other && !r.HasPrompt })
}

// Of a body cut anywhere what stood complete is kept, and what may be incomplete is never continued by the answer.
func TestCutBody(t *testing.T) {
	bodies := map[Kind]string{
		Chat:      `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}],"stream":true}`,
		Responses: `{"model":"m","input":[{"role":"user","content":"a"},{"role":"user","content":"b"}],"stream":true}`,
		Messages:  `{"model":"m","system":"s","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}],"stream":true}`,
		Embedding: `{"model":"m","input":["a","b"],"stream":true}`,
		Rerank:    `{"model":"m","query":"a","documents":["a","b"],"stream":true}`,
	}
	for kind, body := range bodies {
		before := 0
		for n := range body {
			var p Parser
			r, err := p.Parse(kind, []byte(body[:n]))
			if err == nil {
				t.Fatalf("%s: no fault", body[:n])
			}
			r.Hash(1)
			if len(r.talk.messages) < before || n > 12 && r.Model != "m" {
				t.Errorf("%s: %d messages, %d before, model %q", body[:n], len(r.talk.messages), before, r.Model)
			}
			before = len(r.talk.messages)
			for i := range r.Chains {
				if !r.Chains[i].fixed {
					t.Errorf("%s: could be continued", body[:n])
				}
			}
		}
	}
}

type recordedCall struct {
	Name, Path, Body string
	Request          json.RawMessage
	Status           int
}

func recordedKinds(t *testing.T, version string) (calls []recordedCall) {
	t.Helper()
	b, err := os.ReadFile("testdata/vllm-" + version + "-kinds.json")
	if err == nil {
		err = json.Unmarshal(b, &calls)
	}
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

func TestRecordedKinds(t *testing.T) {
	want := map[string]string{ // ok complete failed code output clean, usage
		"responses":              "true true false 0 true true {19 2",
		"responses stream":       "true true false 0 true true {19 2",
		"messages":               "true true false 0 true true {16 2",
		"messages stream":        "true true false 0 true true {16 2",
		"invocations chat":       "true true false 0 true true {16 2",
		"invocations completion": "true true false 0 true true {2 1",
		"messages error":         "false false true 404 false true {0 0",
		"session open":           "false false false 0 true false {0 0",
		"tokenize":               "true false false 0 true true {0 0",
		"embedding, 200":         "false false true 400 false true {0 0",
		"embedding, 404":         "true false false 0 true true {0 0",
		"responses, 0.11":        "true true false 0 true true {18 2",
		"responses stream, 0.11": "true true false 0 true true {18 2",
	}
	for _, version := range []string{"0.32.0", "0.19.1", "0.11.1"} {
		for _, c := range recordedKinds(t, version) {
			name := c.Name
			switch {
			case name == "embeddings on a generate model" && c.Status == 200:
				name = "embedding, 200"
			case name == "embeddings on a generate model":
				name = "embedding, 404"
			case version == "0.11.1" && want[name+", 0.11"] != "":
				name += ", 0.11"
			}
			req := parse(t, KindOf("POST", c.Path), string(c.Request))
			stream := len(c.Body) > 6 && c.Body[:6] == "event:"
			if req.Stream != stream {
				t.Errorf("%s, %s: stream %v", version, c.Name, req.Stream)
			}
			r := NewReply(req.Kind, stream, 0)
			r.Feed([]byte(c.Body))
			if got := verdict(r); len(got) < len(want[name]) || got[:len(want[name])] != want[name] || want[name] == "" {
				t.Errorf("%s, %s:\ngot  %s\nwant %s", version, name, got, want[name])
			}
		}
	}
}
