package exchange_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var runMutants = flag.String("mutants", "",
	"leave each rule of the judge out in turn that fits this pattern, and see that an invariant or a test finds it")

// mutant is the judge without one of its rules.
type mutant struct {
	rule   string
	caught string // by which invariants, whichever comes first
	test   string // where random fleets are too coarse: the test that finds it, as "fleet/worker TestExcuse"
	edits  []edit // several where the rule stands in several places
}

// edit puts one text of a file in another's place.
type edit struct{ file, text, instead string }

// without is a mutant, with the test that finds it.
func without(rule, test, text, instead string) mutant {
	return mutant{rule: rule, test: test, edits: []edit{{text: text, instead: instead}}}
}

// in places mutants of one edit in a file. Their tests are in its package, unless they name another one.
func in(file string, all ...mutant) []mutant {
	for i := range all {
		all[i].edits[0].file = file
		if !strings.Contains(all[i].test, " ") {
			all[i].test = path.Dir(file) + " " + all[i].test
		}
	}
	return all
}

// TestMutantsFit: each mutant's text stands in its file once, and its test is there. Who
// changes a rule learns here that its mutant changes with it.
func TestMutantsFit(t *testing.T) {
	for _, m := range slices.Concat(mutants, workerMutants, exchangeMutants) {
		if _, err := m.mutated(); err != nil {
			t.Errorf("%q, left out: %v", m.rule, err)
		}
		if (m.test == "") == (m.caught == "") {
			t.Errorf("%q, left out: want either an invariant or a test that finds it", m.rule)
		}
		if dir, test, _ := strings.Cut(m.test, " "); test != "" && !hasTest(t, dir, test) {
			t.Errorf("%q, left out: %s has no %s", m.rule, dir, test)
		}
	}
}

// hasTest reports whether a package has that test.
func hasTest(t *testing.T, dir, test string) bool {
	files, err := filepath.Glob(filepath.Join("../..", filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "func "+test+"(")
	})
}

// TestMutants leaves each rule of the judge out in turn. make mutants calls it.
func TestMutants(t *testing.T) {
	if *runMutants == "" {
		t.Skip("make mutants runs it, for some minutes")
	}
	wanted := regexp.MustCompile(*runMutants)
	for _, m := range slices.Concat(mutants, workerMutants, exchangeMutants) {
		if wanted.MatchString(m.rule) {
			m.hunt(t)
		}
	}
}

var (
	breach = regexp.MustCompile(`judge_test.go:\d+: ([a-z0-9 ]+): at|(requests are served)`)
	failed = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
)

// hunt reports whether what is to find the mutant does.
func (m *mutant) hunt(t *testing.T) {
	overlay, err := m.overlay(t.TempDir())
	if err != nil {
		t.Errorf("%q, left out: %v", m.rule, err)
		return
	}
	out := m.run(overlay)
	found, want := "none", strings.Split(m.caught, "|")
	switch is := breach.FindStringSubmatch(out); {
	case m.test != "":
		want = strings.Split(m.test, " ")[1:]
		if is := failed.FindStringSubmatch(out); is != nil {
			found = is[1]
		}
	case is == nil:
	case is[2] != "":
		found = "goodput"
	default:
		found = is[1]
	}
	t.Logf("%-30s %s", found, m.rule)
	if !slices.Contains(want, found) {
		t.Errorf("%q, left out: caught by %q; want %q\n%.2000s", m.rule, found, want, out)
	}
}

// check returns the pattern of the tests whose invariants are to find the mutant.
func (m *mutant) check() string {
	if strings.Contains(m.caught, "goodput") {
		return "TestJudge$|TestGoodput"
	}
	return "TestJudge$"
}

// run runs the model check, or the mutant's test, on the mutant.
func (m *mutant) run(overlay string) (out string) {
	args := []string{"test", "-vet=off", "-timeout", "5m", "-overlay", overlay, "-run"}
	if dir, test, _ := strings.Cut(m.test, " "); test != "" {
		args = append(args, "^"+test+"$", "../../"+dir)
	} else {
		args = append(args, m.check(), ".", "-fleets", "10000")
	}
	b, err := exec.Command("go", args...).CombinedOutput()
	if err == nil || strings.Contains(string(b), "FAIL") {
		return string(b)
	}
	return fmt.Sprintf("%s\n%v", b, err)
}

// overlay writes the mutant's files into a directory, and returns the list with which they lie over the tree.
func (m *mutant) overlay(dir string) (list string, err error) {
	files, err := m.mutated()
	if err != nil {
		return "", err
	}
	replaced := map[string]string{}
	for name, text := range files {
		replaced[name] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replaced)))
		if err := os.WriteFile(replaced[name], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, text, 0o600)
}

// mutated returns the mutant's files by their paths.
func (m *mutant) mutated() (files map[string]string, err error) {
	files = map[string]string{}
	for _, e := range m.edits {
		name, err := filepath.Abs(filepath.Join("../..", filepath.FromSlash(e.file)))
		if err != nil {
			return nil, err
		}
		if files[name] == "" {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			files[name] = string(text)
		}
		if n := strings.Count(files[name], e.text); n != 1 {
			return nil, fmt.Errorf("%s has %q %d times; want once", e.file, e.text, n)
		}
		files[name] = strings.Replace(files[name], e.text, e.instead, 1)
	}
	return files, nil
}
