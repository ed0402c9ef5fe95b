package house_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxConfigFuncs bounds the fields of a Config that are functions: with more of them the package declares an interface.
const maxConfigFuncs = 3

// silent lists the packages that import no net and read no clock. Their results depend on their arguments alone, so a test,
// the backtest and a dry run see exactly what the router sees.
var silent = []string{
	"daemon/request/route", "daemon/fleet/judge", "daemon/fleet/labels", "daemon/fleet/measure", "daemon/fleet/models",
	"daemon/fleet/order", "daemon/fleet/worker", "daemon/lab/vllmsim/engine", "daemon/lab/trial",
	"daemon/lab/traffic", "daemon/lab/world", "daemon/lab/served", "daemon/lab/setup",
	"daemon/request/prompt", "daemon/request/queue", "sdk", "sdk/abi", "sdk/score", "sdk/sdktest", "plugins", "host/meter",
}

// A silent package has none of these imports, and calls none of these functions of package time.
var (
	noisyImports = []string{"net", "net/http"}
	noisyCalls   = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}
)

// parsed is a package's files that are no tests, of all systems at once.
type parsed struct {
	set   *token.FileSet
	names []string // of files, in the order of files
	files []*ast.File
}

// packages parses every package, by folder, those of tools under testdata only if asked to.
func packages(t *testing.T, tools bool) map[string]*parsed {
	t.Helper()
	all := map[string]*parsed{}
	sources(t, func(file string, set *token.FileSet, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") || !tools && strings.Contains("/"+file, "/testdata/") {
			return
		}
		dir := path.Dir(file)
		if all[dir] == nil {
			all[dir] = &parsed{set: set}
		}
		all[dir].names = append(all[dir].names, path.Base(file))
		all[dir].files = append(all[dir].files, f)
	})
	return all
}

// TestFuncFields: a package that needs something of its caller declares an interface, and no list of functions.
func TestFuncFields(t *testing.T) {
	for dir, p := range packages(t, false) {
		for name, n := range p.configFuncs() {
			if n > maxConfigFuncs {
				t.Errorf("%s: %s has %d fields that are functions; at most %d: declare an interface", dir, name, n, maxConfigFuncs)
			}
		}
	}
}

// configFuncs counts the fields that are functions of each struct whose name ends in Config.
func (p *parsed) configFuncs() map[string]int {
	configs := map[string]int{}
	p.types(func(_ string, typ *ast.TypeSpec) {
		if s, ok := typ.Type.(*ast.StructType); ok && strings.HasSuffix(typ.Name.Name, "Config") {
			configs[typ.Name.Name] = funcsIn(s)
		}
	})
	return configs
}

// funcsIn counts the fields of one struct that are functions.
func funcsIn(s *ast.StructType) (n int) {
	for _, field := range s.Fields.List {
		if _, ok := field.Type.(*ast.FuncType); ok {
			n += len(field.Names)
		}
	}
	return n
}

func TestFuncFieldsAreCounted(t *testing.T) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "a.go", `package p
type aConfig struct { f, g func(); n int; h func(int) error }
type other struct { f func(); in struct { g func() } }`, 0)
	if err != nil {
		t.Fatal(err)
	}
	configs := (&parsed{set: set, names: []string{"a.go"}, files: []*ast.File{f}}).configFuncs()
	if len(configs) != 1 || configs["aConfig"] != 3 {
		t.Errorf("Configs %v; want 3 of aConfig", configs)
	}
}

func TestSilentPackages(t *testing.T) {
	seen := map[string]bool{}
	for dir, p := range packages(t, false) {
		r := room(dir)
		if !slices.Contains(silent, r) {
			continue
		}
		seen[r] = true
		for _, n := range p.noises() {
			t.Errorf("%s is to import no net and to read no clock: %s", dir, n)
		}
	}
	for _, r := range silent {
		if !seen[r] {
			t.Errorf("silent: there is no package %s: delete the row", r)
		}
	}
}

// noises lists the imports and calls of the package that a silent room may not have.
func (p *parsed) noises() (found []string) {
	for i, f := range p.files {
		for _, imp := range f.Imports {
			if name := strings.Trim(imp.Path.Value, `"`); slices.Contains(noisyImports, name) {
				found = append(found, fmt.Sprintf("%s imports %s", p.names[i], name))
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains(noisyCalls, sel.Sel.Name) {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == "time" { // a value too: a field set to time.Now reads the clock
				found = append(found, fmt.Sprintf("%s:%d time.%s", p.names[i], p.set.Position(sel.Pos()).Line, sel.Sel.Name))
			}
			return true
		})
	}
	return found
}

// unresolved imports nothing: how a package's own files hang together shows without.
type unresolved struct{}

func (unresolved) Import(string) (*types.Package, error) { return nil, errors.New("not resolved") }

// check finds the types and uses of the package as far as its own files show them. Errors do not matter here: imports
// are missing, and two files for two systems declare a name twice.
func (p *parsed) check() (*types.Package, *types.Info) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	c := types.Config{Importer: unresolved{}, Error: func(error) {}}
	pkg, _ := c.Check(p.files[0].Name.Name, p.set, p.files, info)
	return pkg, info
}

// pairs lists the files of which each uses a name, field or method that the other declares.
func (p *parsed) pairs() (found []string) {
	pkg, info := p.check()
	needs := map[[2]string]bool{}
	for id, used := range info.Uses {
		if used == nil || used.Pkg() != pkg || !used.Pos().IsValid() {
			continue
		}
		if v, ok := used.(*types.Var); ok && !v.IsField() && v.Parent() != pkg.Scope() {
			continue // a parameter or a local
		}
		from, to := p.fileAt(id.Pos()), p.fileAt(used.Pos())
		needs[[2]string{from, to}] = true
	}
	for n := range needs {
		if n[0] < n[1] && needs[[2]string{n[1], n[0]}] {
			found = append(found, n[0]+" and "+n[1])
		}
	}
	slices.Sort(found)
	return found
}

func (p *parsed) fileAt(pos token.Pos) string { return filepath.Base(p.set.Position(pos).Filename) }

// functions calls visit with every function and method, and the file in which it stands.
func (p *parsed) functions(visit func(file string, fn *ast.FuncDecl)) {
	for i, f := range p.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				visit(p.names[i], fn)
			}
		}
	}
}

// types calls visit with every type that the package declares at its top level, and the file in which it stands.
func (p *parsed) types(visit func(file string, typ *ast.TypeSpec)) {
	for i, f := range p.files {
		for _, d := range f.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				visit(p.names[i], spec.(*ast.TypeSpec))
			}
		}
	}
}

// spread lists the types whose methods stand in at least the given number of files.
func (p *parsed) spread(files int) (found []string) {
	homes := map[string]map[string]bool{}
	p.functions(func(file string, fn *ast.FuncDecl) {
		if fn.Recv == nil {
			return
		}
		typ := receiver(fn)
		if homes[typ] == nil {
			homes[typ] = map[string]bool{}
		}
		homes[typ][file] = true
	})
	for _, typ := range slices.Sorted(maps.Keys(homes)) {
		if in := homes[typ]; len(in) >= files {
			found = append(found, fmt.Sprintf("%s in %s", typ, strings.Join(slices.Sorted(maps.Keys(in)), ", ")))
		}
	}
	return found
}

// receiver returns the name of a method's type.
func receiver(fn *ast.FuncDecl) string {
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	switch generic := typ.(type) {
	case *ast.IndexExpr:
		typ = generic.X
	case *ast.IndexListExpr:
		typ = generic.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// The measures find what they are for.
func TestShapeIsMeasured(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go": `// What stands here.
// # Glued
//
// # Apart
package p
import ("net/http"; "time")
type t struct { x, y, z, u int }
func (t t) a(p, q, r int, s, u, v string) int { if t.x == 1 && t.b() { return 1 }; return 0 }
var _, _ = http.MethodGet, time.Now`,
		"b.go": `package p
func (t *t) b() bool { if t.x++; t.x > 0 { }; if t.x = 2; t.x > 0 { }; return t.x == 1 } // ` + "`" + strings.Repeat("+", 40) + `
func G() { var err error; if err = f(); err != nil { } }
func f() error { _ = []t{{1, 2, 3, 4}}; return nil }`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	p := packages(t, false)["."]
	got := size{lines: p.lines(), exported: p.exported(), pairs: len(p.pairs()), spread: len(p.spread(2))}
	if want := (size{lines: 13, exported: 1, pairs: 1, spread: 1}); got != want {
		t.Errorf("size is %+v; want %+v", got, want)
	}
	if got := p.noises(); len(got) != 2 {
		t.Errorf("noises are %q; want an import and a clock", got)
	}
	var v violations
	v.gather(t, ".", p)
	if got, want := (habits{len(v.wide), len(v.glued), len(v.effects), len(v.unkeyed), len(v.long)}), (habits{1, 1, 2, 1, 1}); got != want {
		t.Errorf("habits are %+v; want %+v", got, want)
	}
}
