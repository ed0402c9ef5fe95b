package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// warns maps the methods by which a room logs WARN or ERROR to the index of the text among their arguments. A refuse
// with fewer than four arguments belongs to another room, which returns a reason and logs it itself.
var warns = map[string][]int{"Warn": {0, 2}, "Error": {0}, "warn": {0, 1}, "lose": {4}, "refuse": {1},
	"WarnUntilQuiet": {2}}

// TestLogLines compares docs/log-lines.md with the sources: it lists each WARN and ERROR of the daemon at its level,
// and no line that is gone.
func TestLogLines(t *testing.T) {
	said := map[string]string{} // level and text -> where
	for _, room := range []string{"daemon", "host", "cache"} {
		err := filepath.WalkDir(filepath.Join("../..", room), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, line := range logged(f) {
				said[line] = file
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(said) < 50 {
		t.Fatalf("only %d lines were found in the sources", len(said))
	}
	page := map[string]bool{}
	row := regexp.MustCompile(`(?m)^\| (WARN|ERROR) \| (.*?) \| .+ \|$`)
	for _, m := range row.FindAllStringSubmatch(read(t, "../../docs/log-lines.md"), -1) {
		page[m[1]+" "+m[2]] = true
	}
	for _, line := range slices.Sorted(maps.Keys(said)) {
		if !page[line] {
			t.Errorf("docs/log-lines.md does not say what to do about %q (%s)", line, said[line])
		}
	}
	for _, line := range slices.Sorted(maps.Keys(page)) {
		if said[line] == "" {
			t.Errorf("docs/log-lines.md has %q, which no source logs", line)
		}
	}
}

// logged returns level and text of the lines that a file logs as constants. Of a text with a variable it returns the
// constant beginning.
func logged(f *ast.File) (lines []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if row, ok := n.(*ast.CompositeLit); ok {
			if line := listed(row); line != "" {
				lines = append(lines, line)
			}
			return true
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		level := "WARN"
		if method.Sel.Name == "Error" {
			level = "ERROR"
		}
		for _, at := range warns[method.Sel.Name] {
			if at >= len(call.Args) || method.Sel.Name == "refuse" && len(call.Args) < 4 {
				continue
			}
			if text, _ := constant(call.Args[at]); strings.Contains(text, " ") {
				lines = append(lines, level+" "+strings.TrimSpace(text))
				break
			}
		}
		return true
	})
	return lines
}

// listed returns level and text of a line in a table of lines, {slog.LevelWarn, "text"}; "" if the row is none of WARN
// or ERROR.
func listed(row *ast.CompositeLit) string {
	if len(row.Elts) != 2 {
		return ""
	}
	level, ok := row.Elts[0].(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	text, _ := constant(row.Elts[1])
	switch level.Sel.Name {
	case "LevelWarn":
		return "WARN " + text
	case "LevelError":
		return "ERROR " + text
	}
	return ""
}

// constant returns the constant beginning of a sum, and whether that is all of it.
func constant(e ast.Expr) (text string, whole bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		left, all := constant(e.X)
		if !all {
			return left, false
		}
		right, all := constant(e.Y)
		return left + right, all
	}
	return "", false
}
