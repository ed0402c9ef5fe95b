package house_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxCellWords bounds a cell of a table. A longer text is a list below the table.
const maxCellWords = 40

// written lists the pages that programs write. Their cells are the texts of the sources.
var written = []string{"docs/metrics.md"}

var (
	inTicks = regexp.MustCompile("`[^`]*`|\\\\\\|")
	columns = regexp.MustCompile(`^ {4,}[^ #](.*\S)? {3,}[^ #]`)
)

// brokenTables returns what is wrong with the tables of a page: rows with another number of cells than the head has, rows
// that an empty line cuts off, cells of more than most words, and columns that are made of spaces, which a reflow of the
// page destroys.
func brokenTables(page string, most int) (wrong []string) {
	head, begun, fenced := 0, false, false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		// A bar inside backticks or after a backslash is text.
		bare := inTicks.ReplaceAllStringFunc(line, func(s string) string { return strings.ReplaceAll(s, "|", " ") })
		switch row := strings.TrimSpace(bare); {
		case fenced:
		case strings.HasPrefix(row, "|"):
			cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|"), "|")
			if begun && !strings.HasPrefix(row, "| --") && !strings.HasPrefix(row, "|--") {
				wrong = append(wrong, "a table without a head, or cut by an empty line: "+line)
			}
			begun = head == 0
			if begun {
				head = len(cells)
			}
			if len(cells) != head {
				wrong = append(wrong, "a row with another number of cells than its head: "+line)
			}
			for _, c := range cells {
				if len(strings.Fields(c)) > most {
					wrong = append(wrong, "a long cell, make it a list: "+strings.TrimSpace(c))
				}
			}
		case columns.MatchString(line):
			wrong = append(wrong, "columns of spaces, make it a table: "+line)
		}
		if !strings.HasPrefix(strings.TrimSpace(line), "|") {
			if begun {
				wrong = append(wrong, "a row alone, cut off by an empty line, above: "+line)
			}
			head, begun = 0, false
		}
	}
	return wrong
}

// TestTables: no table of the repository's pages is broken.
func TestTables(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "*.md").Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	for _, page := range strings.Fields(string(out)) {
		text, err := os.ReadFile(page)
		if os.IsNotExist(err) {
			continue // it is deleted, and not committed yet
		} else if err != nil {
			t.Fatal(err)
		}
		most := maxCellWords
		if slices.Contains(written, page) {
			most = 1000
		}
		for _, w := range brokenTables(string(text), most) {
			t.Errorf("%s: %.160s", page, w)
		}
	}
}

func TestBrokenTables(t *testing.T) {
	f := func(page string, want int) {
		t.Helper()
		if got := brokenTables(page, 3); len(got) != want {
			t.Errorf("%q: got %q; want %d", page, got, want)
		}
	}
	f("| a | b |\n| --- | --- |\n| `x|y` | a\\|b |\n", 0)
	f("| a | b |\n| --- | --- |\n| c |\n| d | e | f |\n", 2)
	f("| a |\n| --- |\n| one two three four |\n", 1)
	f("| a |\n| --- |\n\n| b | c |\n| --- | --- |\n", 0)
	f("| a |\n| --- |\n| b |\n\n| c |\n\ntext\n", 1)
	f("| a |\n| --- |\n| b |\n\n| c |\n| d |\n", 1)
	f("text\n\n    a      b\n    1      2\n", 2)
	f("```\n    a      b\n| c |\n| c | d |\n```\n", 0)
	f("    make it     # a command\n", 0)
}
