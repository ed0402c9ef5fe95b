package cli

import (
	"fmt"
	"regexp"

	"github.com/warmpath/warmpath/daemon/admin/operator"
)

// mark writes a ! behind a time that is late.
func mark(text string, time, median float64) string {
	if operator.Late(time, median) {
		return text + "!"
	}
	return text
}

var marked = regexp.MustCompile(`\b[0-9.]+m?s!`)

// redden returns a page for a terminal, with the marked times in red.
func redden(page []byte) []byte { return marked.ReplaceAll(page, []byte("\x1b[31m$0\x1b[0m")) }

// perToken formats a time per output token in seconds, "-" if none is known.
func perToken(seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0fms", 1000*seconds)
}
