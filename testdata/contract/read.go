package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/warmpath/warmpath/sdk/abi"
)

// contract is what the templates see.
type contract struct {
	Version, Minor   int
	Groups           []group
	Records          []record
	Imports, Exports []function
}

// group is constants that are declared together.
type group struct {
	About  []string
	Values []value
}

type value struct{ Name, Type, Text, About string }

type record struct {
	Name   string
	About  []string
	Size   int64
	Fields []field
}

type field struct {
	Name, Type string
	Offset     int64
	About      string
}

// source is a folder of Go, type-checked.
type source struct {
	files []*ast.File
	info  types.Info
}

// load reads the files of a folder. Imports of this module are not followed, as no constant or record needs them.
func load(dir string, names ...string) (*source, error) {
	s := &source{info: types.Info{Defs: map[*ast.Ident]types.Object{}}}
	set := token.NewFileSet()
	for _, name := range names {
		f, err := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("contract: %w", err)
		}
		s.files = append(s.files, f)
	}
	if build.Default.GOROOT == "" { // a program that was built with -trimpath does not know it
		goroot, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return nil, fmt.Errorf("contract: go env GOROOT: %w", err)
		}
		build.Default.GOROOT = strings.TrimSpace(string(goroot))
	}
	config := types.Config{Importer: importer.ForCompiler(set, "source", nil), Error: func(error) {}}
	_, _ = config.Check(dir, set, s.files, &s.info) // what is missing shows in Defs
	return s, nil
}

// read gathers the contract from the project at root.
func read(root string) (*contract, error) {
	words, err := load(filepath.Join(root, "sdk/abi"), "layout.go", "decision.go", "header.go", "row.go", "records.go",
		"names.go", "options.go")
	if err != nil {
		return nil, err
	}
	reasons, err := load(filepath.Join(root, "sdk"), "reason.go")
	if err != nil {
		return nil, err
	}
	c := &contract{Version: abi.Version, Minor: abi.Version & 0xffff}
	for _, s := range []*source{words, reasons} {
		s.each(token.CONST, func(g *ast.GenDecl) { c.constants(s, g) })
		s.each(token.TYPE, func(g *ast.GenDecl) { c.record(s, g) })
	}
	words.each(token.VAR, func(g *ast.GenDecl) {
		switch g.Specs[0].(*ast.ValueSpec).Names[0].Name {
		case "Imports":
			c.Imports, err = functions(g.Doc, abi.Imports)
		case "Exports":
			c.Exports, err = functions(g.Doc, abi.Exports)
		}
	})
	return c, err
}

// each calls f for the declarations of a kind.
func (s *source) each(kind token.Token, f func(*ast.GenDecl)) {
	for _, file := range s.files {
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == kind {
				f(g)
			}
		}
	}
}

// constants adds the numbers of one declaration.
func (c *contract) constants(s *source, g *ast.GenDecl) {
	one := group{About: lines(g.Doc)}
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		for _, name := range v.Names {
			k, ok := s.info.Defs[name].(*types.Const)
			if !ok || !name.IsExported() || strings.HasSuffix(k.Type().String(), ".Type") { // a code of wasm
				continue
			}
			about := strings.Join(append(lines(v.Comment), lines(v.Doc)...), " ")
			switch n := constant.ToInt(k.Val()); {
			case n.Kind() == constant.Int:
				i, _ := constant.Int64Val(n)
				one.Values = append(one.Values, value{Name: name.Name, Type: kind(k.Type(), i), Text: n.String(), About: about})
			case k.Val().Kind() == constant.Float:
				one.Values = append(one.Values, value{Name: name.Name, Type: "f64", Text: k.Val().String(), About: about})
			}
		}
	}
	if len(one.Values) > 0 {
		c.Groups = append(c.Groups, one)
	}
}

// kind is a constant's type in the contract's words.
func kind(t types.Type, n int64) string {
	b, ok := t.Underlying().(*types.Basic)
	switch {
	case ok && b.Info()&types.IsUntyped == 0:
		return strings.NewReplacer("uint", "u", "int", "i", "float", "f").Replace(b.Name())
	case n < 0:
		return "i32"
	}
	return "u32"
}

// record adds a structure, with the offsets of the wire.
func (c *contract) record(s *source, g *ast.GenDecl) {
	spec := g.Specs[0].(*ast.TypeSpec)
	tree, ok := spec.Type.(*ast.StructType)
	if !ok || spec.Name.Name == "Layout" || spec.Name.Name == "Func" {
		return
	}
	sizes := types.SizesFor("gc", "amd64")
	t := s.info.Defs[spec.Name].Type().Underlying().(*types.Struct)
	r := record{Name: spec.Name.Name, About: lines(g.Doc), Size: sizes.Sizeof(t)}
	var all []*types.Var
	for f := range t.Fields() {
		all = append(all, f)
	}
	offsets := sizes.Offsetsof(all)
	at := 0
	for _, f := range tree.Fields.List {
		_, about, _ := strings.Cut(strings.Join(lines(f.Comment), " "), ":")
		for range f.Names {
			r.Fields = append(r.Fields, field{Name: all[at].Name(), Type: kind(all[at].Type(), 0), Offset: offsets[at],
				About: strings.TrimSpace(about)})
			at++
		}
	}
	c.Records = append(c.Records, r)
}

func lines(g *ast.CommentGroup) []string {
	if text := strings.TrimSpace(g.Text()); text != "" {
		return strings.Split(text, "\n")
	}
	return nil
}
