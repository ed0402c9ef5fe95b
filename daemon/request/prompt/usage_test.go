package prompt

import "testing"

// TestUsageInParts: what usages of one answer add up to, however they are cut.
func TestUsageInParts(t *testing.T) {
	f := func(what string, kind Kind, want Usage, events ...string) {
		t.Helper()
		r := NewReply(kind, true, 0)
		for _, e := range events {
			r.Feed([]byte("data: " + e + "\n\n"))
		}
		if r.Finish(); r.Usage() != want {
			t.Errorf("%s: %+v; want %+v", what, r.Usage(), want)
		}
	}
	usage := func(u string) string { return `{"choices":[],"usage":` + u + `}` }
	start := func(u string) string { return `{"type":"message_start","message":{"id":"m","usage":` + u + `}}` }
	end := func(u string) string {
		return `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + u + `}`
	}
	both := Usage{Prompt: 10, Output: 4, Known: true}
	f("the prompt's first", Chat, both, usage(`{"prompt_tokens":10}`), usage(`{"completion_tokens":4}`))
	f("the answer's first", Chat, both, usage(`{"completion_tokens":4}`), usage(`{"prompt_tokens":10}`))
	f("zeros for what the other has", Chat, both, usage(`{"prompt_tokens":10,"completion_tokens":0}`), usage(`{"prompt_tokens":0,"completion_tokens":4}`))
	f("null for it", Chat, both, usage(`{"prompt_tokens":10,"completion_tokens":null}`), usage(`{"prompt_tokens":null,"completion_tokens":4}`))
	f("a running count", Chat, both, usage(`{"prompt_tokens":10,"completion_tokens":1}`), usage(`{"prompt_tokens":10,"completion_tokens":2}`),
		usage(`{"prompt_tokens":10,"completion_tokens":4}`))
	f("the same twice", Chat, both, usage(`{"prompt_tokens":10,"completion_tokens":4}`), usage(`{"prompt_tokens":10,"completion_tokens":4}`))
	f("null behind it", Chat, both, usage(`{"prompt_tokens":10,"completion_tokens":4}`), usage(`null`), usage(`{}`))
	f("the total in a part of its own", Completion, both, usage(`{"completion_tokens":4}`), usage(`{"total_tokens":14}`))
	f("the cached ones in a part of their own", Chat, Usage{Prompt: 10, Output: 4, Cached: 8, CachedKnown: true, Known: true},
		usage(`{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":8}}`), usage(`{"completion_tokens":4,"prompt_tokens_details":null}`))
	f("messages", Messages, both, start(`{"input_tokens":10,"output_tokens":1}`), end(`{"output_tokens":4}`))
	f("messages with a cache", Messages, Usage{Prompt: 110, Output: 4, Cached: 60, CachedKnown: true, Known: true},
		start(`{"input_tokens":10,"cache_creation_input_tokens":40,"cache_read_input_tokens":60,"output_tokens":0}`), end(`{"output_tokens":4}`))
	f("messages, all at the end", Messages, Usage{Prompt: 70, Output: 4, Cached: 60, CachedKnown: true, Known: true},
		start(`{"input_tokens":0,"output_tokens":0}`), end(`{"input_tokens":10,"cache_read_input_tokens":60,"output_tokens":4}`))
	cached := Usage{Prompt: 70, Output: 4, Cached: 60, CachedKnown: true, Known: true}
	f("messages, the cached ones counted twice at first", Messages, cached, start(`{"input_tokens":70,"output_tokens":0}`),
		end(`{"input_tokens":10,"cache_read_input_tokens":60,"output_tokens":4}`))
	f("messages, the prompt without a cache at the end", Messages, cached, start(`{"input_tokens":10,"cache_read_input_tokens":60}`),
		end(`{"input_tokens":0,"output_tokens":4}`))
	f("messages, all of it cached", Messages, Usage{Prompt: 70, Output: 4, Cached: 70, CachedKnown: true, Known: true},
		start(`{"input_tokens":70}`), end(`{"input_tokens":0,"cache_read_input_tokens":70,"output_tokens":4}`))
	f("responses", Responses, both, `{"type":"response.in_progress","response":{"usage":{"input_tokens":10}}}`,
		`{"type":"response.completed","response":{"status":"completed","usage":{"output_tokens":4}}}`)
	f("none", Chat, Usage{}, usage(`null`))
}
