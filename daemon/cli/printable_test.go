package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func TestPrintable(t *testing.T) {
	f := func(said, want string) {
		t.Helper()
		for cut := range len(said) + 1 { // wherever a write ends
			var out bytes.Buffer
			p := &printable{to: &out}
			for _, part := range []string{said[:cut], said[cut:]} {
				if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatalf("%d, %v", n, err)
				}
			}
			if out.String() != want {
				t.Errorf("%q cut at %d: %q; want %q", said, cut, out.String(), want)
			}
		}
	}
	f("a plain line\twith a tab, ä, 語, 🙂\n", "a plain line\twith a tab, ä, 語, 🙂\n")
	f("m\x1b]0;owned\a\x1b[2J", "m\uFFFD]0;owned\uFFFD\uFFFD[2J")
	f("\u009b2J\x7f\r\v", "\uFFFD2J\uFFFD\uFFFD\uFFFD")
	f("a\u202eb\u2066c\u200f", "a\uFFFDb\uFFFDc\uFFFD")
	f("\xffa\xc3(", "\uFFFDa\uFFFD(")
}

// TestCommandsPrintNoEscapes: every command writes through a printable, whatever it prints.
func TestCommandsPrintNoEscapes(t *testing.T) {
	var out bytes.Buffer
	c := &cobra.Command{Use: "outer"}
	c.AddCommand(&cobra.Command{Use: "inner", RunE: func(c *cobra.Command, _ []string) error {
		_, err := fmt.Fprint(c.OutOrStdout(), "m\x1b[2J\n")
		return err
	}})
	c.SetOut(&out)
	if err := execute(t.Context(), c, []string{"inner"}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(out.String(), 0x1b) || !utf8.ValidString(out.String()) {
		t.Errorf("%q", out.String())
	}
}
