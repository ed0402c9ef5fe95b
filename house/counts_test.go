package house_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// numbers are the words that pages count with; the index is the number.
var numbers = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen")

// matches returns how often a pattern matches in a file, from the text start on, up to the next heading.
func matches(file, start, pattern string) func(*testing.T) int {
	return func(t *testing.T) int {
		_, after, found := strings.Cut(readPage(t, file), start)
		if !found {
			t.Fatalf("%s has no %q", file, start)
		}
		section, _, _ := strings.Cut(after, "\n#")
		return len(regexp.MustCompile(pattern).FindAllString(section, -1))
	}
}

// files returns how many files a glob finds.
func files(glob string) func(*testing.T) int {
	return func(t *testing.T) int {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
}

// listed returns the number of texts in a Go list that stands in one line: `var NAME = []string{"a", "b"}`.
func listed(file, name string) func(*testing.T) int {
	return func(t *testing.T) int {
		m := regexp.MustCompile(`var ` + name + ` = \[\]string\{(.*)\}`).FindStringSubmatch(readPage(t, file))
		if m == nil {
			t.Fatalf("%s has no list %s in one line", file, name)
		}
		return strings.Count(m[1], `"`) / 2
	}
}

func readPage(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	gallery   = files("docs/strategies/*/main.go")
	languages = listed("daemon/cli/scaffold/project.go", "Languages")
	questions = matches("docs/night.md", "# ", `(?m)^\| \d+ \|`)
	alike     = matches("docs/measured.md", "### The gallery, in the lab and over HTTP", `(?m)^\| [a-z]+ \|`)
)

// counted lists the sentences that count something, # for the number, and the list that they count.
// A sentence without a list counts what its own page chose.
var counted = []struct {
	page, sentence string
	list           func(*testing.T) int
}{
	{"README.md", "a gallery of #", gallery},
	{"README.md", "[# questions](docs/night.md)", questions},
	{"CONTRIBUTING.md", "in # languages", languages},
	{"docs/CHANGELOG.md", "a gallery of #", gallery},
	{"docs/CHANGELOG.md", "in all # languages", languages},
	{"docs/CHANGELOG.md", "# skeletons in each", listed("daemon/cli/scaffold/project.go", "Skeletons")},
	{"docs/disaggregation.md", "compares # sums of seconds", matches("docs/disaggregation.md", "sums of seconds", `(?m)^- .*;$|^- without`)},
	{"docs/kubernetes.md", "# files of values", files("testdata/release/chart/values/*.yaml")},
	{"docs/kubernetes.md", "# keys change what it looks at", matches("docs/kubernetes.md", "keys change what it looks at:", `(?m)^- `)},
	{"docs/kv-cache.md", "the same # names", files("plugins/builtin/*.wasm.zst")},
	{"docs/lab.md", "# of the gallery", alike},
	{"docs/lab.md", "for each of # strategies to daemons", matches("docs/lab.md", "`make labcheck`", "(?m)^\\| `[a-z]+` \\|")},
	{"docs/lab.md", "# tuned rules of other routers", nil},
	{"docs/measured.md", "# tuned rules of other routers", nil},
	{"docs/measured.md", "# strategies of [the gallery]", alike},
	{"docs/night.md", "# questions at three", questions},
	{"docs/sizing.md", "a worker has #,", matches("docs/sizing.md", "a worker has ", "`warmpath_worker_[a-z_]+`")},
	{"docs/strategies.md", "has # that people ask for", gallery},
	{"docs/strategies.md", "holds all # to the same answers", languages},
	{"docs/strategies/README.md", "# strategies that people ask for", gallery},
}

// counts finds numbers of things that have a list somewhere.
var counts = regexp.MustCompile(`(?i)\b(?:` + strings.Join(numbers[2:], "|") + `) (?:[a-z'-]+ )?(?:strategies|languages|questions|skeletons|` +
	`metrics|endpoints|alerts|connectors|listeners|scenarios|commands|names|reasons|rules|codes|files of values)\b`)

// TestNumbersInProse: a number that a page gives is that of the list, and each number of such things is in counted.
func TestNumbersInProse(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md", "docs/strategies/README.md") {
		text := strings.Join(strings.Fields(readPage(t, page)), " ")
		for _, c := range counted {
			if c.page != page {
				continue
			}
			before, after, _ := strings.Cut(c.sentence, "#")
			pattern := regexp.MustCompile(`(?i)` + regexp.QuoteMeta(before) + `\b(` + strings.Join(numbers, "|") + `)\b` + regexp.QuoteMeta(after))
			m := pattern.FindStringSubmatch(text)
			if m == nil {
				t.Errorf("%s has no sentence %q any more", page, c.sentence)
				continue
			}
			if c.list != nil {
				if n := c.list(t); slices.Index(numbers, strings.ToLower(m[1])) != n {
					t.Errorf("%s says %q, and the list has %d", page, m[0], n)
				}
			}
			text = pattern.ReplaceAllString(text, "")
		}
		for _, m := range counts.FindAllString(text, -1) {
			t.Errorf("%s says %q: add it to counted, with the list that has them", page, m)
		}
	}
}
