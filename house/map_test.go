package house_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mapFile has the layout of the code, and what to touch for an addition.
const mapFile = "CONTRIBUTING.md"

// section returns a part of mapFile, from its heading to the next one.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile(mapFile)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", mapFile, heading)
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

// TestMap: the layout of the code names each folder of two levels with Go files in it or below it, and each file to open exists.
func TestMap(t *testing.T) {
	named := map[string]bool{}
	for row := range strings.SplitSeq(section(t, "Layout of the code"), "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 5 || cells[2] == " --- " {
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
				t.Errorf("%s: %v has no file %s", mapFile, folders, file)
			}
		}
	}
	for dir := range packages(t, false) {
		parts := strings.Split(dir, "/")
		if two := path.Join(parts[:min(2, len(parts))]...); dir != "." && !named[two] {
			t.Errorf("%s, Layout of the code: %s has no row", mapFile, two)
			named[two] = true
		}
	}
	for f := range named {
		if !exists(f) {
			t.Errorf("%s names %s, which is not there", mapFile, f)
		}
	}
}

// TestToAddPaths: each file that the lists of "What to touch" name exists, and each function and variable stands in the file
// that is named next.
func TestToAddPaths(t *testing.T) {
	parts := strings.Split(section(t, "What to touch"), "\n### ")[1:]
	if len(parts) < 5 {
		t.Errorf("there are %d lists", len(parts))
	}
	for _, part := range parts {
		title, _, _ := strings.Cut(part, "\n")
		words := quoted(part)
		for i, w := range words {
			switch {
			case strings.Contains(w, "/"):
				if !exists(w) {
					t.Errorf("%s, %s: %s is not there", mapFile, title, w)
				}
			case i+1 < len(words):
				text, err := os.ReadFile(words[i+1])
				if err != nil || !strings.Contains(string(text), w) {
					t.Errorf("%s, %s: %s does not stand in %s", mapFile, title, w, words[i+1])
				}
			default:
				t.Errorf("%s, %s: %s is followed by no file that has it", mapFile, title, w)
			}
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(filepath.FromSlash(file))
	return err == nil
}

var (
	linked  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	inText  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the names by which links reach the headings of a page.
func anchors(page string) map[string]bool {
	all := map[string]bool{"": true}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		all[strings.ReplaceAll(inText.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// TestLinks: each link of a page to a file of this repository leads to a file, and to a heading if it names one.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, page := range append(pages, "README.md", mapFile) {
		for _, m := range linked.FindAllStringSubmatch(read(page), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			to := path.Join(path.Dir(filepath.ToSlash(page)), file)
			switch {
			case strings.Contains(m[1], "://"):
				continue
			case file == "":
				to = page
			case !exists(to):
				t.Errorf("%s has a link to %s, which is not there", page, m[1])
				continue
			}
			if anchor != "" && !anchors(read(to))[anchor] {
				t.Errorf("%s has a link to %s, which has no such heading", page, m[1])
			}
		}
	}
}
