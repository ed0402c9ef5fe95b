package warmpath_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// section returns a part of README, from its heading to the next one.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("README.md has no section %q", heading)
	}
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}

var inBackticks = regexp.MustCompile("`([^`]+)`")

// quoted lists what stands between backticks.
func quoted(text string) (all []string) {
	for _, m := range inBackticks.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// TestMap: README names each folder of two levels with Go files in it or below it, and each file to open exists.
func TestMap(t *testing.T) {
	named := map[string]bool{}
	for row := range strings.SplitSeq(section(t, "Layout of the code"), "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 5 || cells[2] == " --- " || cells[2] == " touch " {
			continue
		}
		folders := quoted(cells[1])
		for _, f := range folders {
			named[f] = true
		}
		for _, file := range quoted(cells[3]) {
			if !slices.ContainsFunc(folders, func(f string) bool {
				return exists(path.Join(f, file)) || exists(path.Join(path.Dir(f), file))
			}) {
				t.Errorf("README.md: %v has no file %s", folders, file)
			}
		}
	}
	for dir := range packages(t, false) {
		parts := strings.Split(dir, "/")
		if two := path.Join(parts[:min(2, len(parts))]...); dir != "." && !named[two] {
			t.Errorf("README.md, Layout of the code: %s has no row", two)
			named[two] = true
		}
	}
	for f := range named {
		if !exists(f) {
			t.Errorf("README.md names %s, which is not there", f)
		}
	}
}

// TestToAddPaths: each file that the table "to add | touch" names exists, and each function and variable stands in the
// file that is named next.
func TestToAddPaths(t *testing.T) {
	_, table, ok := strings.Cut(section(t, "Layout of the code"), "| to add | touch |")
	if !ok {
		t.Fatal("README.md has no table of what to touch")
	}
	rows := 0
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 4 || cells[2] == " --- " {
			continue
		}
		rows++
		words := quoted(cells[2])
		for i, w := range words {
			switch {
			case strings.Contains(w, "/"):
				if !exists(w) {
					t.Errorf("README.md, to add%s: %s is not there", cells[1], w)
				}
			case i+1 < len(words):
				text, err := os.ReadFile(words[i+1])
				if err != nil || !strings.Contains(string(text), w) {
					t.Errorf("README.md, to add%s: %s does not stand in %s", cells[1], w, words[i+1])
				}
			default:
				t.Errorf("README.md, to add%s: %s is followed by no file that has it", cells[1], w)
			}
		}
	}
	if rows < 5 {
		t.Errorf("the table has %d rows", rows)
	}
}

func exists(file string) bool {
	_, err := os.Stat(filepath.FromSlash(file))
	return err == nil
}
