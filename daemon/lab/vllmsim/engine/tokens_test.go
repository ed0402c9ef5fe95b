package engine

import (
	"slices"
	"testing"
	"unicode/utf8"
)

func TestTokenIDsAreAsDocumented(t *testing.T) {
	f := func(text string, want ...uint32) {
		t.Helper()
		if got := AppendTokens(nil, text); !slices.Equal(got, want) {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	f("")
	f("abcd", 1684234849)
	f("a", 4177526881)
	f("abcda", 1684234849, 4177526881)
	f("\x05\x00\x00\x00", 5)
	if TokenUser != 4278190082 {
		t.Errorf("<|user|> is %d", TokenUser)
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
		ids := AppendTokens(nil, text)
		if len(ids) != CountTokens(text) {
			t.Fatalf("%d tokens, CountTokens says %d", len(ids), CountTokens(text))
		}
		var back []byte
		for _, id := range ids {
			var ok bool
			if back, ok = AppendTokenText(back, id); !ok {
				t.Fatalf("%#x is no token", id)
			}
		}
		if string(back) != text {
			t.Fatalf("got %q back, want %q", back, text)
		}
	})
}

func TestTextOfTokens(t *testing.T) {
	for _, n := range []int{0, 1, 16, 512, 513} {
		ids := AppendTokens(nil, TextOfTokens(7, n))
		if len(ids) != n {
			t.Errorf("TextOfTokens(7, %d) has %d tokens", n, len(ids))
		}
	}
	a, _ := hashBlocks(0, AppendTokens(nil, TextOfTokens(1, 512)), BlockTokens)
	b, _ := hashBlocks(0, AppendTokens(nil, TextOfTokens(2, 512)), BlockTokens)
	if a[0] == b[0] {
		t.Error("two labels share their first block")
	}
	if whole, part := TextOfTokens(3, 512), TextOfTokens(3, 100); whole[:len(part)] != part {
		t.Error("a shorter text is no prefix of the longer one")
	}
}
