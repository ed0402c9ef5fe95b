package cli

import (
	"strconv"
	"strings"
	"unicode"
)

// spoken lays an error out for a terminal. The host quotes what a module says about its error, to keep it on one line
// of a log; of a Go guest that is a panic and its stack. Here each of its lines gets one of its own, at the end.
func spoken(err error) string {
	text := err.Error()
	before, rest, found := strings.Cut(text, ` (it says "`)
	quoted, bad := strconv.QuotedPrefix(`"` + rest)
	if !found || bad != nil {
		return text
	}
	said, _ := strconv.Unquote(quoted)
	said = strings.TrimSpace(said)
	if !strings.Contains(said, "\n") {
		return text
	}
	plain := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar // a terminal would obey it
	}, said)
	after := strings.TrimPrefix(rest[len(quoted)-1:], ")")
	return before + after + "; it says:\n  " + strings.ReplaceAll(plain, "\n", "\n  ")
}
