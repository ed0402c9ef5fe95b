package tokens

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

func TestWhatDecidesTheIDs(t *testing.T) {
	base := read(prompt.Chat, hello)
	f := func(same bool, body string) {
		t.Helper()
		q := read(prompt.Chat, body)
		if q.why != "" {
			t.Errorf("%s: %s", body, q.why)
		}
		if (q.key == base.key) != same {
			t.Errorf("%s: same key is %v; want %v", body, !same, same)
		}
	}
	f(true, `{"messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":3,"model":"m","user":"u"}`)
	f(true, `{"model":"m","tool_choice":null,"messages":[{"role":"user","content":"hi"}]}`)
	f(false, `{"model":"n","messages":[{"role":"user","content":"hi"}]}`)
	f(false, `{"model":"m","messages":[{"role":"user","content":"hi"}],"add_generation_prompt":false}`)
	f(false, `{"model":"m","messages":[{"role":"user","content":"hi"}],"chat_template_kwargs":{"enable_thinking":false}}`)
	f(false, `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[]}`)
	f(false, `{"model":"m","messages":[{"role":"user","content":"hi"}],"never_heard_of":1}`)
	f(false, `{"model":"m","messages":[{"role":"user","content":"h"},{"role":"user","content":"i"}]}`)
	f(false, `{"model":"m","messages":[{"role":"user","content":"hi","reasoning":"x"}]}`)
}

func TestWhatIsNotAskedFor(t *testing.T) {
	f := func(want Outcome, kind prompt.Kind, body string) {
		t.Helper()
		s := newScene(t, renderless("[1]"))
		if ids, o := s.ids(t.Context(), kind, body); o != want || (ids != nil) != (want == Given) {
			t.Errorf("%s: %s, %v; want %s", body, o, ids, want)
		}
	}
	f(Given, prompt.Completion, `{"prompt":[1, 2,3]}`)
	f(Given, prompt.Completion, `{"prompt":[[1,2,3]]}`)
	f(Given, prompt.Tokens, `{"token_ids":[1, 2,3],"sampling_params":{"max_tokens":1}}`)
	f(Unsupported, prompt.Tokens, `{"prompt":[1, 2,3]}`)
	f(Unsupported, prompt.Completion, `{"prompt":[[1,2],[3]]}`)
	f(Unsupported, prompt.Completion, `{"prompt":["a","b"]}`)
	f(Unsupported, prompt.Completion, `{"prompt":[1,-2]}`)
	f(Unsupported, prompt.Completion, `{"prompt":[1,4294967296]}`)
	f(Unsupported, prompt.Completion, `{"prompt":null,"prompt_embeds":"x"}`)
	f(Unsupported, prompt.Completion, `{"prompt":"a","truncate_prompt_tokens":3}`)
	f(Unsupported, prompt.Completion, `{"prompt":"a","prompt":"b"}`)
	f(Unsupported, prompt.Completion, `{"prompt":"a"`)
	f(Unsupported, prompt.Chat, `{"messages":[]}`)
	f(Unsupported, prompt.Chat, `{"messages":"x"}`)
	f(Unsupported, prompt.Chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`)
	f(Unsupported, prompt.Chat, `{"messages":[{"role":"user","content":"x"}],"documents":[{}]}`)
	f(Unsupported, prompt.Messages, `{"messages":[{"role":"user","content":"x"}]}`)
	f(Unsupported, prompt.Responses, `{"input":"x"}`)
	f(Unsupported, prompt.Responses, `{"input":"x","previous_response_id":"r"}`)
	f(Unsupported, prompt.Embedding, `{"input":"x"}`)
	f(TooLong, prompt.Completion, `{"prompt":"`+strings.Repeat("x", maxText)+`"}`)
	f(TooLong, prompt.Completion, `{"prompt":"`+strings.Repeat("x", unknownLength)+`"}`) // of 4096 tokens, by a short text's answer
}

func TestTextPartsAreText(t *testing.T) {
	s := newScene(t, renderless("[1]"))
	body := `{"messages":[{"role":"user","content":[{"type":"text","text":"x"},"y"]},{"role":"assistant","content":null}]}`
	if _, o := s.ids(t.Context(), prompt.Chat, body); o != Asked {
		t.Error(o)
	}
}
