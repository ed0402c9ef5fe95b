package house_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// habits counts what the style of this repository rules out, in code that is no test.
type habits struct {
	wide    int // lines over maxColumns
	glued   int // headings of comments without an empty line before them, which go doc shows as text
	effects int // `if x = y; cond`, which hides an assignment in a condition
	unkeyed int // literals of structs with over maxUnkeyed fields that do not name them
	long    int // functions with over maxParameters; tools below testdata may have some
}

const (
	maxColumns    = 120 // a tab is one
	maxUnkeyed    = 3
	maxParameters = 5
)

func TestStyle(t *testing.T) {
	var found violations
	for dir, p := range packages(t, true) {
		found.gather(t, dir, p)
	}
	none := func(what string, places []string) {
		if len(places) > 0 {
			t.Errorf("%s: %s", what, some(places))
		}
	}
	none(fmt.Sprintf("lines over %d columns", maxColumns), found.wide)
	none("headings without an empty line before them", found.glued)
	none("`if x = y; cond`", found.effects)
	none(fmt.Sprintf("literals of over %d fields without names", maxUnkeyed), found.unkeyed)
	none(fmt.Sprintf("functions with over %d parameters", maxParameters), found.long)
}

// The length of a package comment, a screen and a half. What exceeds it goes to why.md beside it: reasons, figures, what
// was tried and lost.
const (
	maxDocWords = 600
	maxDocLines = 80
)

func TestPackageComments(t *testing.T) {
	sources(t, func(file string, _ *token.FileSet, f *ast.File) {
		if f.Doc == nil || strings.HasSuffix(file, "_test.go") {
			return
		}
		if n := len(strings.Fields(f.Doc.Text())); n > maxDocWords {
			t.Errorf("%s: the package comment has %d words; at most %d: move reasons and figures to why.md", file, n, maxDocWords)
		}
		if n := strings.Count(f.Doc.Text(), "\n"); n > maxDocLines {
			t.Errorf("%s: the package comment has %d lines; at most %d: move reasons and figures to why.md", file, n, maxDocLines)
		}
	})
}

// violations lists where each habit was found.
type violations struct{ wide, glued, effects, unkeyed, long []string }

func (v *violations) gather(t *testing.T, dir string, p *parsed) {
	for _, name := range p.names {
		text, err := os.ReadFile(path.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		before := ""
		for i, line := range strings.Split(string(text), "\n") {
			if utf8.RuneCountInString(line) > maxColumns {
				v.wide = append(v.wide, fmt.Sprintf("%s/%s:%d", dir, name, i+1))
			}
			if strings.HasPrefix(line, "// # ") && strings.HasPrefix(before, "// ") {
				v.glued = append(v.glued, fmt.Sprintf("%s/%s:%d", dir, name, i+1))
			}
			before = line
		}
	}
	at := func(n ast.Node) string {
		return fmt.Sprintf("%s/%s:%d", dir, p.fileAt(n.Pos()), p.set.Position(n.Pos()).Line)
	}
	_, info := p.check()
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.IfStmt:
				if hidesAssignment(n.Init) {
					v.effects = append(v.effects, at(n))
				}
			case *ast.CompositeLit:
				if len(n.Elts) > maxUnkeyed && unkeyedStruct(n, info) {
					v.unkeyed = append(v.unkeyed, at(n))
				}
			case *ast.FuncDecl:
				if n.Type.Params.NumFields() > maxParameters && !strings.HasPrefix(dir, "testdata/") {
					v.long = append(v.long, at(n))
				}
			}
			return true
		})
	}
}

// hidesAssignment reports an assignment to a variable of before. `err = f()` is allowed, as the condition reads it.
func hidesAssignment(init ast.Stmt) bool {
	switch s := init.(type) {
	case *ast.IncDecStmt:
		return true
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE && slices.ContainsFunc(s.Lhs, func(x ast.Expr) bool {
			id, ok := x.(*ast.Ident)
			return !ok || id.Name != "err" && id.Name != "_"
		})
	}
	return false
}

// unkeyedStruct reports a literal of one of the package's own structs that gives its fields by order. Vet reports those of
// other packages' structs.
func unkeyedStruct(lit *ast.CompositeLit, info *types.Info) bool {
	if _, keyed := lit.Elts[0].(*ast.KeyValueExpr); keyed {
		return false
	}
	typ := info.Types[lit].Type
	if typ == nil {
		return false
	}
	if p, ok := typ.Underlying().(*types.Pointer); ok { // an element of []*T{{...}}
		typ = p.Elem()
	}
	_, ok := typ.Underlying().(*types.Struct)
	return ok
}

// some shortens a list of places.
func some(places []string) string {
	const most = 30
	if more := len(places) - most; more > 0 && !testing.Verbose() {
		return fmt.Sprintf("%s and %d more, which -v lists", strings.Join(places[:most], ", "), more)
	}
	return strings.Join(places, ", ")
}
