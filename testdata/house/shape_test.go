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

// shape measures how a package hangs together. Pairs are two files that need each other. Spread is the number of files
// over which the methods of one type stand, and branches is the number of ways through one function: the worst counts.
type shape struct{ pairs, spread, branches int }

// best is what every package aims at.
var best = shape{pairs: 5, spread: 5, branches: 20}

// exceptions lists the packages that are not there yet, each with the number that it may not exceed. Numbers only go
// down. TestShape fails on one that is no longer needed, so that it is deleted.
var exceptions = map[string]shape{}

const (
	maxRootLines   = 1000 // of package daemon, which wires the rooms and decides nothing
	maxConfigFuncs = 3    // fields of a Config that are functions: more of them are an interface of the room
	maxFuncFields  = 70   // fields of structs that are functions, in the whole house
)

// silent lists the rooms that act on what they are given. They import no net and read no clock, so a test, the backtest
// and a dry run see exactly what the router sees.
var silent = []string{
	"daemon/request/route", "daemon/fleet/worker", "daemon/lab/vllmsim/engine", "daemon/lab/trial",
	"daemon/lab/traffic", "daemon/lab/world", "daemon/lab/served", "daemon/lab/setup",
	"daemon/request/prompt", "daemon/request/queue", "sdk", "sdk/abi", "sdk/score", "sdk/sdktest", "plugins", "host/meter",
}

// stillNoisy counts the imports and calls that a silent room has yet to lose. Numbers only go down.
var stillNoisy = map[string]int{}

// noise is what a silent room may not import, and which functions of time it may not call.
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

func TestShape(t *testing.T) {
	all := packages(t, false)
	for dir, p := range all {
		today := exceptions[dir]
		pairs := p.pairs()
		needed := strings.Join(pairs, ", ")
		ratchet(t, dir+": pairs of files that need each other", len(pairs), best.pairs, today.pairs, needed)
		n, where := p.spread()
		ratchet(t, dir+": files with methods of one type", n, best.spread, today.spread, where)
		n, where = p.branches()
		ratchet(t, dir+": branches of one function", n, best.branches, today.branches, where)
	}
	for dir := range exceptions {
		if all[dir] == nil {
			t.Errorf("exceptions[%q]: there is no such package: delete the row", dir)
		}
	}
	lines := 0
	for _, f := range all["daemon"].files {
		lines += all["daemon"].set.Position(f.FileEnd).Line
	}
	ratchet(t, "daemon: lines", lines, maxRootLines, 0, "move what decides into its room")
}

// ratchet fails if n is over both its aim and what is excepted today, and if there is an exception that nobody needs.
func ratchet(t *testing.T, what string, n, aim, today int, where string) {
	t.Helper()
	switch {
	case n > max(aim, today):
		t.Errorf("%s: %d; at most %d: %s", what, n, max(aim, today), where)
	case n <= aim && today != 0:
		t.Errorf("%s: %d is within %d: delete the exception of %d", what, n, aim, today)
	case n < today:
		t.Logf("%s: %d; the exception of %d can be lowered", what, n, today)
	}
}

// TestFuncFields: what a room asks of who uses it is an interface that it declares, and no list of functions.
func TestFuncFields(t *testing.T) {
	total, most, where := 0, 0, ""
	for dir, p := range packages(t, false) {
		n, worst := p.funcFields()
		total += n
		if n > most {
			most, where = n, fmt.Sprintf("most are in %s: %d", dir, n)
		}
		for name, n := range worst {
			if n > maxConfigFuncs {
				t.Errorf("%s: %s has %d fields that are functions; at most %d: declare an interface", dir, name, n, maxConfigFuncs)
			}
		}
	}
	ratchet(t, "fields that are functions", total, maxFuncFields, 0, where)
}

// funcFields counts the fields of structs that are functions, all and those of each Config.
func (p *parsed) funcFields() (all int, configs map[string]int) {
	configs = map[string]int{}
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.TypeSpec:
				if s, ok := x.Type.(*ast.StructType); ok && strings.HasSuffix(x.Name.Name, "Config") {
					configs[x.Name.Name] = funcsIn(s)
				}
			case *ast.StructType:
				all += funcsIn(x)
			}
			return true
		})
	}
	return all, configs
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
type other struct { f func(); in struct { g func() } }
var _ = []struct{ f func() }{}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	all, configs := (&parsed{set: set, files: []*ast.File{f}}).funcFields()
	if all != 6 || len(configs) != 1 || configs["aConfig"] != 3 {
		t.Errorf("%d fields, Configs %v; want 6, and 3 of aConfig", all, configs)
	}
}

func TestSilentRooms(t *testing.T) {
	found := map[string][]string{}
	for dir, p := range packages(t, false) {
		if r := room(dir); slices.Contains(silent, r) {
			found[r] = append(found[r], p.noises()...)
		}
	}
	for r := range stillNoisy {
		if !slices.Contains(silent, r) {
			t.Errorf("stillNoisy[%q]: the room is not in silent", r)
		}
	}
	for _, r := range silent {
		ratchet(t, r+": imports of net and looks at the clock", len(found[r]), 0, stillNoisy[r], strings.Join(found[r], ", "))
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

// spread returns in how many files the methods of one type stand, at worst, and says which.
func (p *parsed) spread() (worst int, where string) {
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
		if files := homes[typ]; len(files) > worst {
			worst, where = len(files), fmt.Sprintf("%s in %s", typ, strings.Join(slices.Sorted(maps.Keys(files)), ", "))
		}
	}
	return worst, where
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

// branches returns the most branches that a function has, and says which.
func (p *parsed) branches() (worst int, where string) {
	p.functions(func(file string, fn *ast.FuncDecl) {
		if n := branchesOf(fn); n > worst {
			worst, where = n, file+": "+fn.Name.Name
		}
	})
	return worst, where
}

// branchesOf counts one for the function and one for each if, loop, case, && and ||. It leaves out function literals.
func branchesOf(fn *ast.FuncDecl) int {
	n := 1
	ast.Inspect(fn, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.FuncLit:
			return false
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.CommClause:
			n++
		case *ast.CaseClause:
			n += min(len(x.List), 1) // default is no branch of its own
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
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
func g() { var err error; if err = f(); err != nil { } }
func f() error { _ = []t{{1, 2, 3, 4}}; return nil }`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	p := packages(t, false)["."]
	spread, _ := p.spread()
	branches, _ := p.branches()
	if got, want := (shape{len(p.pairs()), spread, branches}), (shape{1, 2, 3}); got != want {
		t.Errorf("shape is %+v; want %+v", got, want)
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
