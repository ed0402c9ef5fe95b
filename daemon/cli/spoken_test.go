package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestSpoken: what a module says in several lines stands in as many, without what a terminal would obey.
func TestSpoken(t *testing.T) {
	const trap = `host: module "mine": wp_pick: wasm error: unreachable`
	for says, want := range map[string]string{
		"":                            trap,
		` (it says "no such knob")`:   trap + ` (it says "no such knob")`,
		` (it says "cut`:              trap + ` (it says "cut`,
		` (it says "panic: \"a\"\n")`: trap + ` (it says "panic: \"a\"\n")`,
		fmt.Sprintf(" (it says %q); raise it", "panic: \"a\" \x1b[31m\n\ngoroutine 1:\n\tmain.go:7\n"): trap +
			"; raise it; it says:\n  panic: \"a\" \ufffd[31m\n  \n  goroutine 1:\n  \tmain.go:7",
	} {
		if got := spoken(errors.New(trap + says)); got != want {
			t.Errorf("%s\n%q; want\n%q", says, got, want)
		}
	}
}

// TestAPanicIsReadable: plugin check shows the panic of a Go guest, and where it came about, in lines.
func TestAPanicIsReadable(t *testing.T) {
	t.Parallel()
	dir := workplace(t)
	warmpath(t, dir, "plugin new mine").succeed()
	main := filepath.Join(dir, "mine", "main.go")
	write(t, main, strings.Replace(read(t, main), "var ranking", "panic(\"not \" + \"yet\")\n\tvar ranking", 1))
	warmpath(t, dir, "plugin build mine").succeed()
	p := warmpath(t, dir, "plugin check mine/mine.wasm")
	if code := p.end(); code != 1 || !strings.Contains(p.String(), "; it says:\n  panic: not yet\n") ||
		!strings.Contains(p.String(), "\n  \tmine/main.go:") {
		t.Errorf("exit %d, want 1 and the panic in lines:\n%s", code, p)
	}
}
