package gate

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		if got := Cut(s); got != want {
			t.Errorf("Cut(%.20q, %d bytes) = %q; want %q", s, len(s), got, want)
		}
	}
	f("", "")
	f("sim", "sim")
	f(strings.Repeat("a", 256), strings.Repeat("a", 256))
	f(strings.Repeat("a", 257), strings.Repeat("a", 253)+"...")
	f(strings.Repeat("ä", 200), strings.Repeat("ä", 126)+"...")
	f(strings.Repeat("語", 200), strings.Repeat("語", 84)+"...")
}

// FuzzCut: at most 256 bytes, a prefix, and UTF-8 stays UTF-8.
func FuzzCut(f *testing.F) {
	f.Add(strings.Repeat("\x80", 300))
	f.Add(strings.Repeat("🦊", 80))
	f.Fuzz(func(t *testing.T, s string) {
		got := Cut(s)
		if len(got) > MaxText || !strings.HasPrefix(s, strings.TrimSuffix(got, "...")) || utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("Cut(%q) = %q", s, got)
		}
		if len(s) <= MaxText && got != s {
			t.Errorf("Cut(%q) = %q; want it whole", s, got)
		}
	})
}
