package vllmsim

import (
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"
)

func TestTokenIDsAreAsDocumented(t *testing.T) {
	f := func(text string, want ...uint32) {
		t.Helper()
		if got := appendTokens(nil, text); !slices.Equal(got, want) {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	f("")
	f("abcd", 1684234849)
	f("a", 4177526881)
	f("abcda", 1684234849, 4177526881)
	f("\x05\x00\x00\x00", 5)
	if tokenUser != 4278190082 {
		t.Errorf("<|user|> is %d", tokenUser)
	}
}

// FuzzTokens: every text comes back from its tokens, and its length in tokens is the stated one.
func FuzzTokens(f *testing.F) {
	f.Add("Hello, wörld \U0010ffff")
	f.Add("abc")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip() // no JSON string decodes to it
		}
		ids := appendTokens(nil, text)
		if len(ids) != CountTokens(text) {
			t.Fatalf("%d tokens, CountTokens says %d", len(ids), CountTokens(text))
		}
		var back []byte
		for _, id := range ids {
			var ok bool
			if back, ok = appendText(back, id); !ok {
				t.Fatalf("%#x is no token", id)
			}
		}
		if string(back) != text {
			t.Fatalf("got %q back, want %q", back, text)
		}
	})
}

// FuzzPrompts: no prompt makes the parser panic, and ids that are accepted are those that were sent.
func FuzzPrompts(f *testing.F) {
	for _, s := range []string{`"x"`, `[1,2]`, `[[1],[2, 3]]`, `["a","b"]`, `[]`, `[[]]`, `[1.5]`, `[-1]`, `[null]`, `{}`, ` [ 1 , 2 ] `, `[1,"a"]`, `[[1],"a"]`} {
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

func TestTextOfTokens(t *testing.T) {
	for _, n := range []int{0, 1, 16, 512, 513} {
		ids := appendTokens(nil, TextOfTokens(7, n))
		if len(ids) != n {
			t.Errorf("TextOfTokens(7, %d) has %d tokens", n, len(ids))
		}
	}
	a, _ := chain(0, appendTokens(nil, TextOfTokens(1, 512)), BlockTokens)
	b, _ := chain(0, appendTokens(nil, TextOfTokens(2, 512)), BlockTokens)
	if a[0] == b[0] {
		t.Error("two labels share their first block")
	}
	if whole, part := TextOfTokens(3, 512), TextOfTokens(3, 100); whole[:len(part)] != part {
		t.Error("a shorter text is no prefix of the longer one")
	}
}

func TestChatTokensHaveTheStatedOverhead(t *testing.T) {
	m := []message{{Role: "system", Content: "be brief"}, {Role: "user", Content: "abc"}, {Role: "weird", Content: nil}}
	want := CountTokens("be brief") + CountTokens("abc") + 3*MessageTokens + GenerationTokens
	if got := len(chatTokens(nil, m, true)); got != want {
		t.Errorf("got %d tokens, want %d", got, want)
	}
	if got := chatTokens(json.RawMessage(`[ {"a" : 1} ]`), m[:1], false); got[0] != tokenTools || got[len(got)-1] != tokenEnd {
		t.Errorf("tools do not come first: %d", got)
	}
	parts := []any{map[string]any{"type": "text", "text": "abc"}, map[string]any{"type": "image_url", "image_url": map[string]any{"url": "u"}}}
	if got := chatTokens(nil, []message{{Role: "user", Content: parts}}, false); len(got) != MessageTokens+1+5 {
		t.Errorf("text and image are %d tokens, want %d", len(got), MessageTokens+1+5)
	}
}
