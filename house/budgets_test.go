package house_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"testing"
)

// size measures a package without its tests. Pairs are two files that use each other's names. Spread counts the types whose
// methods stand in three files or more.
type size struct{ lines, exported, pairs, spread int }

// budget is what a package may grow to. A package that is over it does more than one thing.
var budget = size{lines: 4500, exported: 90, pairs: 6, spread: 4}

// budgets lists the packages that need another one. Each has some tenth more than its package had when the row was written,
// so that a change never has to shave lines.
var budgets = map[string]size{
	"daemon":                   {lines: 1550, exported: 40, pairs: 5, spread: 1}, // wires the other packages and decides nothing
	"daemon/request/attempt":   {lines: 2270, exported: 30, pairs: 6, spread: 4},
	"daemon/request/admission": {lines: 4500, exported: 95, pairs: 6, spread: 4},
	"daemon/peers":             {lines: 5200, exported: 90, pairs: 6, spread: 4}, // one stream, and the file in its form
	"daemon/request/exchange":  {lines: 2100, exported: 30, pairs: 6, spread: 5},
	"daemon/fleet/judge":       {lines: 4500, exported: 115, pairs: 6, spread: 4},
	"daemon/fleet/worker":      {lines: 5900, exported: 190, pairs: 9, spread: 4},
	"daemon/request/route":     {lines: 5700, exported: 185, pairs: 9, spread: 6},
	"daemon/request/prompt":    {lines: 5500, exported: 90, pairs: 6, spread: 4},
	"host":                     {lines: 5000, exported: 90, pairs: 6, spread: 4}, // one sandbox: wazero is imported here alone
	"daemon/cli":               {lines: 5500, exported: 20, pairs: 6, spread: 2},
	"daemon/lab/vllmsim":       {lines: 7010, exported: 40, pairs: 6, spread: 2},
	"sdk":                      {lines: 4500, exported: 100, pairs: 6, spread: 4}, // an interface for each thing that a strategy may do
	"conf":                     {lines: 5800, exported: 115, pairs: 6, spread: 4},
}

// What a file and a function should not exceed. TestBudgets logs those that do, and does not fail.
const (
	adviceFile     = 400
	adviceFunction = 70
	adviceBranches = 20
)

// TestBudgets: no package is over its budget. With -v it logs the long files and functions too.
func TestBudgets(t *testing.T) {
	all := packages(t, false)
	for _, dir := range slices.Sorted(maps.Keys(all)) {
		p := all[dir]
		most, ok := budgets[dir]
		if !ok {
			most = budget
		}
		within := func(what string, n, most int, where []string) {
			if n > most {
				t.Errorf("%s: %s: %d; its budget is %d: split the package, or say in the commit why it may grow: %s", dir, what, n, most,
					some(where))
			}
		}
		pairs, spread := p.pairs(), p.spread(3)
		within("lines", p.lines(), most.lines, nil)
		within("exported names", p.exported(), most.exported, nil)
		within("pairs of files that use each other", len(pairs), most.pairs, pairs)
		within("types with methods in three files or more", len(spread), most.spread, spread)
		for _, long := range p.long() {
			t.Logf("advice: %s/%s", dir, long)
		}
	}
	for dir := range budgets {
		if all[dir] == nil {
			t.Errorf("budgets[%q]: there is no such package: delete the row", dir)
		}
	}
}

// lines counts every line of the package's files.
func (p *parsed) lines() (n int) {
	for _, f := range p.files {
		n += p.set.Position(f.FileEnd).Line
	}
	return n
}

// exported counts the functions, methods and types whose names begin with a capital.
func (p *parsed) exported() (n int) {
	p.functions(func(_ string, fn *ast.FuncDecl) {
		if fn.Name.IsExported() {
			n++
		}
	})
	p.types(func(_ string, typ *ast.TypeSpec) {
		if typ.Name.IsExported() {
			n++
		}
	})
	return n
}

// long lists the files and functions that exceed what is advised.
func (p *parsed) long() (found []string) {
	for i, f := range p.files {
		if n := p.set.Position(f.FileEnd).Line; n > adviceFile {
			found = append(found, fmt.Sprintf("%s has %d lines", p.names[i], n))
		}
	}
	p.functions(func(file string, fn *ast.FuncDecl) {
		if n := p.set.Position(fn.End()).Line - p.set.Position(fn.Pos()).Line + 1; n > adviceFunction {
			found = append(found, fmt.Sprintf("%s: %s has %d lines", file, fn.Name.Name, n))
		}
		if n := branchesOf(fn); n > adviceBranches {
			found = append(found, fmt.Sprintf("%s: %s has %d branches", file, fn.Name.Name, n))
		}
	})
	return found
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
