package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/pair"
)

// TestNeighboursOfPairs: bodies beside those of TestConnectors, as somebody would write them who looks for a gap: prompts
// that are cut, fields that come twice, megabytes, and what pools. Both legs carry one prompt, each client gets its answer,
// and nothing stays at a prefiller. Where a decoder serves nothing alone, what cannot be split is refused in words.
func TestNeighboursOfPairs(t *testing.T) {
	t.Parallel()
	const completion, chat, responses, messages = "/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages"
	huge := strings.Repeat("megabytes ", 400_000)
	cases := []struct {
		path, fields string
		twice        bool // a field comes twice, which the Rust front end refuses
	}{
		{completion, `"truncate_prompt_tokens":-1`, false},
		{completion, `"truncate_prompt_tokens":300`, false},
		{completion, `"truncate_prompt_tokens":-1,"max_tokens":1`, false},
		{completion, `"truncate_prompt_tokens":null,"max_tokens":null`, false},
		{completion, `"trunc\u0061te_prompt_tokens":-1,"stream":true`, false},
		{completion, `"truncate_prompt_tokens":-1e0`, false},
		{completion, `"truncate_prompt_tokens":100,"truncate_prompt_tokens":-1`, true},
		{completion, `"truncate_prompt_tokens":-1,"truncate_prompt_tokens":100`, true},
		{chat, `"truncate_prompt_tokens":-1`, false},
		{chat, `"truncate_prompt_tokens":300,"max_completion_tokens":9`, false},
		{chat, `"max_completion_tokens":9,"max_tokens":7`, false},
		{responses, `"truncation":"auto"`, false},
		{responses, `"truncation":"disabled"`, false},
		{responses, `"tr\u0075ncation":"a\u0075to","max_output_tokens":20`, false},
		{responses, `"truncation":"disabled","truncation":"auto"`, true},
		{responses, `"store":true,"background":false,"max_output_tokens":null`, false},
		{messages, `"max_tokens":9,"truncate_prompt_tokens":-1`, false},
		{messages, `"max_tokens":9,"truncation":"auto"`, false},
		{messages, `"max_tokens":9,"max_tokens":11`, true},
		{completion, `"max_tokens":5,"max_tokens":7,"stream":false,"stream":true`, true},
		{completion, `"stream_options":null,"stream":true,"stream_options":{"include_usage":true}`, true},
		{completion, `"model":"sim","n":1,"n":1`, true},
		{completion, `"prompt":"short","prompt":"another one"`, true},
		{chat, `"cache_salt":"a","cache_salt":"b"`, true},
		{completion, `"kv_transfer_params":{"do_remote_prefill":true,"remote_request_id":"` + huge + `"}`, false},
		{completion, `"user":"` + huge + `"`, false},
		{chat, `"vllm_xargs":{"kv_transfer_params":{"do_remote_prefill":true},"a":1}`, false},
		{chat, `"tools":[{"type":"function","function":{"name":"kv_transfer_params","parameters":{"bootstrap_room":1}}}]`, false},
		{completion, `"n":2`, false},
		{completion, `"stop":["x"],"min_tokens":4,"max_tokens":8,"ignore_eos":false`, false},
		{chat, `"logprobs":true,"top_logprobs":2,"stream":true`, false},
		{"/v1/embeddings", `"truncate_prompt_tokens":-1`, false},
		{"/pooling", `"truncate_prompt_tokens":100,"kv_transfer_params":null`, false},
		{"/v1/score", `"text_1":"a","text_2":"b","truncate_prompt_tokens":-1`, false},
		{"/v1/rerank", `"query":"a","documents":["b"],"bootstrap_room":1`, false},
		{"/classify", `"truncation":"auto"`, false},
	}
	for _, name := range pair.Connectors() {
		for _, engine := range []string{"python 0.19", "rust"} {
			c := pair.Connector(name)
			if c == pair.SGLang && engine == "rust" {
				continue
			}
			t.Run(name+" "+engine, func(t *testing.T) {
				t.Parallel()
				r, e, _ := startConnector(t, c, engine)
				for i, x := range cases {
					if x.twice && engine == "rust" {
						continue // the client's own mistake
					}
					text := fmt.Sprintf("%d %s", i, strings.Repeat("word ", 2000))
					body := fmt.Sprintf(`{"model":"sim",%s,"prompt":%q}`, x.fields, text)
					switch x.path {
					case chat, messages:
						body = fmt.Sprintf(`{"model":"sim",%s,"messages":[{"role":"user","content":%q}]}`, x.fields, text)
					case completion:
					default:
						body = fmt.Sprintf(`{"model":"sim",%s,"input":%q}`, x.fields, text)
					}
					s := r.do("POST", x.path, body, "Authorization", "Bearer secret-key-0123456789")
					said := s.status == 400 && !c.Alone() && strings.Contains(s.body, "cannot be split")
					if (s.status != 200 || !strings.Contains(s.body, "hi") || strings.Contains(s.body, "secret")) && !said {
						t.Errorf("%s %.100s: %d %.300s", x.path, x.fields, s.status, s.body)
					}
					e.mu.Lock()
					// a busy machine may be late with a prompt, and the decoder's wait for it is ended
					e.refused = slices.DeleteFunc(e.refused, func(s string) bool { return s == "KV of nothing" })
					if len(e.refused) > 0 {
						t.Errorf("%s %.100s: %.300q", x.path, x.fields, e.refused)
						e.refused = nil
					}
					e.mu.Unlock()
				}
				e.mu.Lock()
				handed := e.handed
				e.fill = fmt.Sprintf(`,"fill":%q`, huge)
				e.mu.Unlock()
				if handed < 3 {
					t.Errorf("%d prompts of %d requests were handed over", handed, len(cases))
				}
				s := r.do("POST", completion, fmt.Sprintf(`{"model":"sim","prompt":%q}`, longText("fill", 2000)),
					"Authorization", "Bearer secret-key-0123456789")
				if c.Pins() {
					eventually(t, "nothing is kept", func() bool {
						e.mu.Lock()
						defer e.mu.Unlock()
						return len(e.kept) == 0
					})
				}
				e.mu.Lock()
				defer e.mu.Unlock()
				e.refused = slices.DeleteFunc(e.refused, func(s string) bool { return s == "KV of nothing" })
				if s.status != 200 || len(e.refused) > 0 {
					t.Errorf("parameters of 4 MB: %d %.300s, %.300q", s.status, s.body, e.refused)
				}
				if n := r.metric("warmpath_prefills_total", `result="refused"`); n > 0 {
					t.Errorf("prefillers refused %v prompts", n)
				}
			})
		}
	}
}
