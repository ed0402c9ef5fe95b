package prompt

import "testing"

// TestFormless: which bodies are answers of a kind.
func TestFormless(t *testing.T) {
	f := func(kind Kind, body string, want bool) {
		t.Helper()
		r := NewReply(kind, false, 0)
		r.Body([]byte(body))
		if got := r.Formless([]byte(body), true); got != want {
			t.Errorf("%v, %q: formless %v; want %v", kind, body, got, want)
		}
	}
	forms := map[Kind][]string{
		Chat:        {`{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"content":"a"}}]}`, `{"choices":[]}`},
		Completion:  {`{"choices":[{"text":"a"}],"usage":null}`},
		Responses:   {`{"id":"resp_1","object":"response","output":[]}`, `{"id":"resp_1","status":"queued"}`},
		Messages:    {`{"type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}`},
		CountTokens: {`{"input_tokens":3}`},
		Embedding:   {`{"object":"list","data":[{"embedding":[0.1]}]}`, `{"embeddings":[[1]]}`, `[{"embedding":[0.1]}]`, ` []`},
		Rerank:      {`{"id":"x","results":[]}`, `[{"index":0,"score":0.5}]`},
		Score:       {`{"object":"list","data":[]}`, `{"scores":[0.5]}`},
		Tokenize:    {`{"count":3,"max_model_len":9,"tokens":[1,2,3]}`},
	}
	for kind, good := range forms {
		for _, body := range good {
			f(kind, body, false)
		}
		f(kind, "\ufeff"+good[0], false)
		for _, body := range []string{"", "  ", "{}", " { } ", "null", "true", "7", `"welcome"`, "<html>", "Service ready", `{"status":"ok"}`} {
			want := body != `{"status":"ok"}` || kind != Responses
			f(kind, body, want)
		}
		f(kind, `{"error":{"message":"no","code":500}}`, false) // it says so itself
	}
	f(Chat, `[]`, true)
	f(Responses, `{"object":"list","usage":{"input_tokens":9,"output_tokens":3}}`, false) // an engine has computed it, and it counts
	f(Chat, `{"choices":[{"logprob":NaN}]}`, false)                                       // Python's JSON

	begins := func(kind Kind, text string, want bool) {
		t.Helper()
		if got := NewReply(kind, false, 0).Formless([]byte(text), false); got != want {
			t.Errorf("%v begins with %q: formless %v; want %v", kind, text, got, want)
		}
	}
	for _, text := range []string{"", " ", "{", "{ ", `{"`, "\ufeff{\"id\":"} {
		begins(Chat, text, false)
	}
	for _, text := range []string{"{}", " {\n}", "null", "<", "[{"} {
		begins(Chat, text, true)
	}
	begins(Rerank, "[{", false)
}
