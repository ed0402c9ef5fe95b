package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// treeTests returns the folders of the repository, and those in which each test, fuzz target or benchmark stands.
func treeTests(t *testing.T, root string) (folders []string, tests map[string][]string) {
	t.Helper()
	tests = map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == ".cache" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if !slices.Contains(folders, rel) {
			folders = append(folders, rel)
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests[fn.Name.Name] = append(tests[fn.Name.Name], rel)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders, tests
}

// namedTests matches a folder, whole or its last part, or the name of a test.
var namedTests = regexp.MustCompile(`\b(?:(?:Test|Fuzz|Benchmark|Example)[A-Z]\w*|[a-z]\w*(?:/\w+)*)\b`)

// aside is text in brackets: it names no folder, though its words may be those of one.
var aside = regexp.MustCompile(`\([^()]*\)`)

// missingTests returns the tests of one cell that are not in the tree. The last folder namedTests before a test is where
// it stands.
func missingTests(cell string, folders []string, tests map[string][]string) (found int, missing []string) {
	cell = aside.ReplaceAllStringFunc(cell, func(s string) string { return regexp.MustCompile(`\b[a-z]\w*`).ReplaceAllString(s, "") })
	in := ""
	isIn := func(folder string) bool {
		return folder == in || path.Base(folder) == in || strings.HasSuffix(folder, "/"+in)
	}
	for _, word := range namedTests.FindAllString(cell, -1) {
		if c := word[0]; c >= 'a' && c <= 'z' {
			was := in
			if in = word; !slices.ContainsFunc(folders, isIn) {
				in = was
			}
			continue
		}
		found++
		if at := tests[word]; len(at) == 0 || in != "" && !slices.ContainsFunc(at, isIn) {
			missing = append(missing, strings.TrimSpace(in+" "+word))
		}
	}
	return found, missing
}

// TestReviewsNameTestsOfTheTree: a row of testdata/reviews.md is a promise, and a test that is renamed must not break
// it in silence.
func TestReviewsNameTestsOfTheTree(t *testing.T) {
	folders, tests := treeTests(t, ".")
	if len(tests) < 500 {
		t.Fatalf("only %d tests were found in the tree", len(tests))
	}
	text, err := os.ReadFile("testdata/reviews.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| finding ") {
			continue
		}
		rows++
		// A bar inside backticks or after a backslash is text.
		bare := regexp.MustCompile("`[^`]*`|\\\\\\|").ReplaceAllStringFunc(line, func(s string) string { return strings.ReplaceAll(s, "|", " ") })
		cells := strings.Split(strings.Trim(bare, "| "), " | ")
		if len(cells) != 4 {
			t.Errorf("reviews.md:%d has %d cells; want finding | test | before | after", i+1, len(cells))
			continue
		}
		found, missing := missingTests(cells[1], folders, tests)
		for _, m := range missing {
			t.Errorf("reviews.md:%d: %s is not in the tree", i+1, m)
		}
		if found == 0 && !strings.Contains(cells[1], "`") && !strings.Contains(cells[1], "attacks ") {
			t.Errorf("reviews.md:%d names no test and no `command`: %q", i+1, cells[1])
		}
	}
	if rows == 0 {
		t.Error("reviews.md has no row")
	}
}

func TestMissingTests(t *testing.T) {
	folders := []string{"daemon", "daemon/request/prompt", "host"}
	tests := map[string][]string{"TestA": {"daemon"}, "TestB": {"daemon/request/prompt", "host"}, "FuzzC": {"host"}}
	f := func(cell string, found int, want ...string) {
		t.Helper()
		if n, got := missingTests(cell, folders, tests); n != found || !slices.Equal(got, want) {
			t.Errorf("%q: got %d, %q want %d, %q", cell, n, got, found, want)
		}
	}
	f("daemon TestA", 1)
	f("daemon: TestA (with Redis), prompt TestB; host FuzzC, TestB", 4)
	f("daemon/request/prompt: TestA", 1, "daemon/request/prompt TestA")
	f("daemon TestA (before the host), TestA (TestZ)", 3, "daemon TestZ")
	f("TestA, TestZ", 2, "TestZ")
	f("host TestA", 1, "host TestA")
	f("`testdata/run trials/attacks -run keys`", 0)
}
