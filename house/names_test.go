package house_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	vague := []string{"util", "utils", "common", "helper", "helpers", "types", "base"}
	sources(t, func(file string, set *token.FileSet, f *ast.File) {
		if name := strings.TrimSuffix(f.Name.Name, "_test"); slices.Contains(vague, name) {
			t.Errorf("%s: package %s says nothing: name it after what it does", file, name)
		}
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		for _, decl := range f.Decls {
			undocumented(decl, func(id *ast.Ident) {
				t.Errorf("%s: exported %s has no comment", set.Position(id.Pos()), id.Name)
			})
		}
	})
}

// undocumented reports exported names without a comment. A group of constants or variables may have one for all; a method
// of an unexported type needs none.
func undocumented(decl ast.Decl, report func(*ast.Ident)) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			report(d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					report(s.Name)
				}
			case *ast.ValueSpec:
				for _, id := range s.Names {
					if id.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						report(id)
					}
				}
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	id, ok := typ.(*ast.Ident)
	return !ok || id.IsExported()
}

// Every room says what it is for.
func TestEveryRoomHasADoc(t *testing.T) {
	documented := make(map[string]bool)
	packages := make(map[string]bool)
	sources(t, func(file string, _ *token.FileSet, f *ast.File) {
		if dir := path.Dir(file); !strings.HasSuffix(file, "_test.go") {
			packages[dir] = true
			documented[dir] = documented[dir] || f.Doc != nil
		}
	})
	for dir := range packages {
		if !documented[dir] && !strings.Contains(dir, "testdata/") {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

// ownWords are nouns that named types here, each with the words of the field in its place. The laboratory's visits are
// simulated ones.
var ownWords = map[string]string{
	"visit":     "request",
	"reception": "handler",
	"sentry":    "header check",
	"turnstile": "listener",
	"intake":    "body reader",
	"handed":    "taken over",
	"post":      "connection state",
	"door":      "listener, or protocol",
	"lane":      "queue, or connection",
	"cable":     "connection",
	"parcel":    "message",
	"story":     "outcome",
	"lapse":     "gap",
}

// TestStandardTerms: a type is named by a word that a reader who knows the field knows.
func TestStandardTerms(t *testing.T) {
	sources(t, func(file string, set *token.FileSet, f *ast.File) {
		if strings.HasPrefix(file, "daemon/lab/") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if term := ownWords[strings.ToLower(spec.Name.Name)]; term != "" {
					t.Errorf("%s: type %s: name it %s", set.Position(spec.Pos()), spec.Name.Name, term)
				}
			}
			return true
		})
	})
}
