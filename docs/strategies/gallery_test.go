package strategies

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab"
	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/trial"
)

var update = flag.Bool("update", false, "write the lab's figures into README.md")

// gallery is the strategies, with what their options and allow are in the lab, and their lines without the SDK's newer
// functions.
var gallery = []struct {
	name, options, allow string
	before               int
}{
	{"slo", "", "headers:x-slo-ttft-ms", 38},
	{"generations", "", "", 23},
	{"tenants", "", "", 26},
	{"twochoices", "", "", 22},
	{"bounded", "", "headers:x-user", 43},
	{"bandit", "", "", 42},
	{"phases", "", "", 16},
	{"adapters", "", "", 17},
	{"hours", " zone=Europe/Berlin", "", 20},
	{"arms", "", "", 20},
	{"pairs", "", "", 0}, // has no beginning before ABI 1.2
}

// The strategies together have at most three quarters of the lines that they had, and README.md has the lines of each.
func TestTheyAreShort(t *testing.T) {
	text := readme(t)
	before, after := 0, 0
	for _, g := range gallery {
		n := lines(t, g.name)
		was := fmt.Sprint(g.before)
		if g.before == 0 {
			was = "-"
		} else {
			before, after = before+g.before, after+n
		}
		if want := fmt.Sprintf("| [%s](%[1]s/main.go) | %s | %d |", g.name, was, n); !strings.Contains(text, want) {
			t.Errorf("README.md has no %s", want)
		}
	}
	if 4*after > 3*before {
		t.Errorf("%d lines; want at most three quarters of %d", after, before)
	}
	if want := fmt.Sprintf("| together | %d | %d |", before, after); !strings.Contains(text, want) {
		t.Errorf("README.md has no %s", want)
	}
	if dirs, _ := filepath.Glob("*/main.go"); len(dirs) != len(gallery) {
		t.Errorf("there are %d strategies; the table has %d", len(dirs), len(gallery))
	}
}

// lines counts a strategy's: its type and its methods, without empty ones.
func lines(t *testing.T, name string) (n int) {
	t.Helper()
	path := filepath.Join(name, "main.go")
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, isFunc := d.(*ast.FuncDecl)
		g, isGen := d.(*ast.GenDecl)
		if isFunc && f.Recv == nil || isGen && g.Tok == token.IMPORT {
			continue
		}
		for line := range strings.Lines(string(src[set.Position(d.Pos()).Offset:set.Position(d.End()).Offset])) {
			if strings.TrimSpace(line) != "" {
				n++
			}
		}
	}
	return n
}

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Each strategy decides in the sandbox on the lab's gallery.toml, and README.md has its figures. After a change run
// go test ./docs/strategies -update, and read the difference.
func TestInTheLab(t *testing.T) {
	dir := t.TempDir()
	sc, err := setup.Read("gallery.toml")
	if err != nil {
		t.Fatal(err)
	}
	config := lab.Config{Scenarios: []*setup.Scenario{sc}, Seeds: []uint64{1}, Processors: lab.Processors()}
	add := func(name, allow string) {
		found, err := lab.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if allow != "" {
			found[0].Allow([]string{allow})
		}
		config.Strategies = append(config.Strategies, found...)
	}
	for _, g := range gallery {
		add(build(t, dir, g.name)+g.options, g.allow)
	}
	add("prefixaware", "")
	add("roundrobin", "")
	runs, err := lab.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	table := "| | TTFT mean, s | p90, s | hit rate |\n| --- | --- | --- | --- |\n"
	for i, r := range runs {
		name := config.Strategies[i].Name
		if i < len(gallery) {
			name = gallery[i].name
		}
		if r.Fallbacks > len(r.Outcomes)/100 || r.Rejected > 0 || len(r.Refused) > 0 {
			t.Errorf("%s: declined %d of %d requests, rejected %d, asked in vain for %v", name, r.Fallbacks, len(r.Outcomes),
				r.Rejected, r.Refused)
		}
		table += row(name, r)
	}
	hold(t, table)
}

// build compiles a strategy into dir and returns the module's path.
func build(t *testing.T, dir, name string) string {
	t.Helper()
	file := filepath.Join(dir, name+".wasm")
	c := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", file, "./"+name)
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// row is a line of figures.
func row(name string, r *trial.Run) string {
	cached, prompt := 0, 0
	for i := range r.Outcomes {
		cached += r.Outcomes[i].Cached
		prompt += r.Outcomes[i].Prompt
	}
	ttft := r.Values((*trial.Outcome).TTFT)
	return fmt.Sprintf("| %s | %.3f | %.3f | %.1f %% |\n", name, trial.Mean(ttft), trial.Quantile(ttft, .9),
		100*float64(cached)/float64(max(1, prompt)))
}

// hold compares the table with README.md's.
func hold(t *testing.T, table string) {
	t.Helper()
	was := readme(t)
	now := regexp.MustCompile(`(?s)(<!-- lab -->\n).*(<!-- end -->)`).ReplaceAllString(was, "${1}"+table+"${2}")
	switch {
	case now == was:
	case *update:
		if err := os.WriteFile("README.md", []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("README.md has other figures: run go test ./docs/strategies -update; now they are\n%s", table)
	}
}
