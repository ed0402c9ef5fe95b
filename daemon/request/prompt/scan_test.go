package prompt

import (
	"strings"
	"testing"
)

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
