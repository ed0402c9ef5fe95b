package cli

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// statesOf lists where the sources have the words of a part of docs/states.md: in the files, the first group of the
// expression within the text between a beginning and an end ("" = all of it).
var statesOf = map[string][]struct {
	files, begin, end, word string
}{
	"State of a worker": {
		{"daemon/fleet/worker/standing.go", "[...]string{", "}[s]", `: "([^"]+)"`},
		{"daemon/admin/operator/describe.go", "", "", `Outside = "([^"]+)"`},
	},
	"Why a worker was no candidate": {
		{"daemon/request/route/described.go", "func skipped(", "\n}", `return "([^"]+)"`},
		{"daemon/request/route/explain.go", "is not in the order.\nconst (", "\n)", `= "([^"]+)"`},
	},
	"Why a request went to the next worker": {{"daemon/request/journal/reason.go", "type Reason string", "\n)", `Reason = "(\w+)"`}},
	"Why a worker was chosen": {
		{"sdk/reason.go", "var reasons", "\n}", `"([^"]+)"`},
		{"daemon/request/route/choice.go", "func (c *Choice) Reason()", "\n}", `return "(failover: [^"]+)"`},
		{"daemon/request/route/ask.go", "func (l Leg) boundReason()", "\n}", `return "([^"]+)"`},
	},
	"When the host's own fallback chose": {
		{"host/result.go", "var reasonNames", "}", `"(\w+)"`},
	},
	"Why a pool cannot serve": {{"daemon/admin/readiness/pool.go", "const (", "\n)", `Why\w+ += "([^"]+)"`}},
	"How an answer ended":     {{"daemon/request/*/*.go", "", "", `(?:\.End|EndContinued) = "([^"]+)"`}},
	"Codes of errors": {
		{"daemon/request/*/*.go", "", "", `Fault\{Status: \d+, Kind: "\w+", Code: "(\w+[a-z])"[,}]`},
		{"daemon/request/sessionapi/api.go", "func unknownEndpoint(", "\n}", `Code: "(\w+)"`},
		{"daemon/request/session/binding.go", "func (s Status) String()", "\n}", `"(unknown|expired|closed|lost)"`},
	},
}

// TestStatesPage compares docs/states.md with the sources: each state, reason and code is in its part of the page, and
// none that is gone.
func TestStatesPage(t *testing.T) {
	page := strings.Split(read(t, "../../docs/states.md"), "\n## ")[1:]
	if len(page) != len(statesOf) {
		t.Errorf("the page has %d parts; want %d", len(page), len(statesOf))
	}
	row := regexp.MustCompile(`(?m)^\| ([^|]+) \| .+ \|$`)
	for _, part := range page {
		title, _, _ := strings.Cut(part, "\n")
		has := map[string]bool{}
		for _, m := range row.FindAllStringSubmatch(part, -1)[1:] { // the first match is the table's head
			if m[1] != "---" {
				has[m[1]] = true
			}
		}
		want := wordsOf(t, title)
		for _, w := range slices.Sorted(maps.Keys(want)) {
			if !has[w] {
				t.Errorf("docs/states.md, %s: %q is missing", title, w)
			}
		}
		for _, w := range slices.Sorted(maps.Keys(has)) {
			if !want[w] {
				t.Errorf("docs/states.md, %s: no source has %q", title, w)
			}
		}
	}
}

// wordsOf returns the words of the sources that belong to a part of the page.
func wordsOf(t *testing.T, title string) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	for _, from := range statesOf[title] {
		found := 0
		files, _ := filepath.Glob("../../" + from.files)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text := read(t, file)
			if from.begin != "" {
				_, text, _ = strings.Cut(text, from.begin)
				text, _, _ = strings.Cut(text, from.end)
			}
			for _, m := range regexp.MustCompile(from.word).FindAllStringSubmatch(text, -1) {
				word := m[1]
				if strings.HasSuffix(word, " ") { // a number follows
					word += "N"
				}
				if strings.Contains(from.files, "/session/") {
					word = "session_" + word
				}
				words[word] = true
				found++
			}
		}
		if found == 0 {
			t.Errorf("%s: nothing is found in %s", title, from.files)
		}
	}
	return words
}
