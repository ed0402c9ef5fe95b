package vllmsim

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// FuzzPrompts: no prompt makes the parser panic, and ids that are accepted are those that were sent.
func FuzzPrompts(f *testing.F) {
	for _, s := range []string{`"x"`, `[1,2]`, `[[1],[2, 3]]`, `["a","b"]`, `[]`, `[[]]`, `[1.5]`, `[-1]`, `[null]`, `{}`,
		` [ 1 , 2 ] `, `[1,"a"]`, `[[1],"a"]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) {
			t.Skip()
		}
		prompts, err := parsePrompts(json.RawMessage(s))
		if err == nil && len(prompts) == 0 {
			t.Fatal("neither prompts nor an error")
		}
		var ids []uint32
		if err == nil && len(prompts) == 1 && json.Unmarshal([]byte(s), &ids) == nil && !slices.Equal(ids, prompts[0]) {
			t.Fatalf("got %d, want %d", prompts[0], ids)
		}
	})
}

func TestChatTokensHaveTheStatedOverhead(t *testing.T) {
	m := []message{{Role: "system", Content: "be brief"}, {Role: "user", Content: "abc"}, {Role: "weird", Content: nil}}
	want := engine.CountTokens("be brief") + engine.CountTokens("abc") + 3*MessageTokens + GenerationTokens
	if got := len(chatTokens(nil, m, true)); got != want {
		t.Errorf("got %d tokens, want %d", got, want)
	}
	if got := chatTokens(json.RawMessage(`[ {"a" : 1} ]`), m[:1], false); got[0] != engine.TokenTools ||
		got[len(got)-1] != engine.TokenEnd {
		t.Errorf("tools do not come first: %d", got)
	}
	parts := []any{map[string]any{"type": "text", "text": "abc"},
		map[string]any{"type": "image_url", "image_url": map[string]any{"url": "u"}}}
	if got := chatTokens(nil, []message{{Role: "user", Content: parts}}, false); len(got) != MessageTokens+1+5 {
		t.Errorf("text and image are %d tokens, want %d", len(got), MessageTokens+1+5)
	}
}
