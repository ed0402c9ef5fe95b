package prompt

import (
	"bytes"
	"strings"
	"testing"
)

// Every byte value at every place, after any other byte: the word-at-a-time search against the plain one.
func TestSpecial(t *testing.T) {
	plain := func(b []byte, i int) int {
		for ; i < len(b); i++ {
			if b[i] == '"' || b[i] == '\\' || b[i] < ' ' {
				return i
			}
		}
		return len(b)
	}
	for _, fill := range []byte{'a', ' ', '!', '#', 0x7f, 0x80, 0xff, ']', '['} {
		b := bytes.Repeat([]byte{fill}, 75)
		for at := range b {
			for c := range 256 {
				b[at] = byte(c)
				for _, from := range []int{0, 1, 7, at} {
					if got, want := special(b, from), plain(b, from); got != want {
						t.Fatalf("byte %#x at %d among %#x, from %d: found at %d, want %d", c, at, fill, from, got, want)
					}
				}
			}
			b[at] = fill
		}
	}
}

// Long texts go through a buffer in pieces; wherever the escapes lie, the text is the same.
func TestTextInPieces(t *testing.T) {
	for _, esc := range []string{`\n`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ud83dx`, `\ud83d\u0041`} {
		for at := 2040; at < 2056; at++ {
			raw := []byte(strings.Repeat("a", at-3) + `\t` + esc + strings.Repeat(esc, 700) + strings.Repeat("b", 3000) + esc)
			var got, want Chain
			got.reset(1, domainText)
			want.reset(1, domainText)
			got.text(raw)
			want.Append(unescape(nil, raw))
			if !same(got, want) {
				t.Fatalf("%s at %d: hashed differently", esc, at)
			}
		}
	}
}
