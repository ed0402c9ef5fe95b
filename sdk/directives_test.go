package sdk

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
)

// wire lists the integers of the contract that a Go type stands for at the boundary.
var wire = map[string][]abi.Type{
	"int32": {abi.I32}, "uint32": {abi.I32}, "unsafe.Pointer": {abi.I32},
	"int64": {abi.I64}, "uint64": {abi.I64}, "float64": {abi.F64},
	"string": {abi.I32, abi.I32},
}

// The contract stands once, in sdk/abi; the guest's directives must agree with it.
func TestDirectivesMatchTheContract(t *testing.T) {
	exports := directives(t, ".", "//go:wasmexport ")
	for _, want := range abi.Exports {
		got, ok := exports[want.Name]
		if !ok {
			if want.Name != "_initialize" { // the toolchain's own
				t.Errorf("no go:wasmexport %s", want.Name)
			}
			continue
		}
		compare(t, want, got)
		delete(exports, want.Name)
	}
	for name := range exports {
		t.Errorf("go:wasmexport %s is not in abi.Exports", name)
	}
	imports := directives(t, "internal/imports", "//go:wasmimport "+abi.Module+" ")
	for _, want := range abi.Imports {
		got, ok := imports[want.Name]
		if !ok {
			t.Errorf("no go:wasmimport %s", want.Name)
			continue
		}
		compare(t, want, got)
		delete(imports, want.Name)
	}
	for name := range imports {
		t.Errorf("go:wasmimport %s is not in abi.Imports", name)
	}
}

func compare(t *testing.T, want, got abi.Func) {
	t.Helper()
	if !slices.Equal(got.Params, want.Params) || !slices.Equal(got.Results, want.Results) {
		t.Errorf("%s is %x -> %x; the contract has %x -> %x", want.Name, got.Params, got.Results, want.Params, want.Results)
	}
}

// directives returns the functions below dir's directives of that prefix, by the name that crosses the boundary.
func directives(t *testing.T, dir, prefix string) map[string]abi.Func {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_wasip1.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no guest files in %s: %v", dir, err)
	}
	found := map[string]abi.Func{}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Doc == nil {
				continue
			}
			for _, c := range f.Doc.List {
				if name, ok := strings.CutPrefix(c.Text, prefix); ok {
					found[name] = abi.Func{Name: name, Params: types(t, f.Type.Params), Results: types(t, f.Type.Results)}
				}
			}
		}
	}
	return found
}

func types(t *testing.T, fields *ast.FieldList) (out []abi.Type) {
	t.Helper()
	if fields == nil {
		return nil
	}
	for _, f := range fields.List {
		var name string
		switch x := f.Type.(type) {
		case *ast.Ident:
			name = x.Name
		case *ast.SelectorExpr:
			name = x.X.(*ast.Ident).Name + "." + x.Sel.Name
		}
		w, ok := wire[name]
		if !ok {
			t.Fatalf("type %q does not cross the boundary", name)
		}
		for range max(1, len(f.Names)) {
			out = append(out, w...)
		}
	}
	return out
}
