package abi

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unsafe"
)

var update = flag.Bool("update", false, "write docs/abi.md anew")

const page = "../../docs/abi.md"

// TestPage: the tables of docs/abi.md agree with the compiler and the declarations of this package. After a change run
// go test ./sdk/abi -run TestPage -update, and read the difference.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	s := newSource(t)
	tables := map[string]string{
		"header":  s.fields(t, "Header", reflect.TypeFor[Header]()),
		"row":     s.fields(t, "Row", reflect.TypeFor[Row]()),
		"outcome": s.fields(t, "Outcome", reflect.TypeFor[Outcome]()),
		"kvevent": s.fields(t, "KVEvent", reflect.TypeFor[KVEvent]()),
		"holder":  s.fields(t, "Holder", reflect.TypeFor[Holder]()),
		"tier":    s.fields(t, "Tier", reflect.TypeFor[Tier]()),
		"talk":    s.fields(t, "Talk", reflect.TypeFor[Talk]()),
		"exports": functions(Exports),
		"imports": functions(Imports),
		"headerflags": s.values(t, "HeaderStream", []any{HeaderStream, HeaderEvents, HeaderTokens, HeaderAnswer,
			HeaderPrefill, HeaderFinal}),
		"rowflags": s.values(t, "RowSlowStart", []any{RowSlowStart, RowStale, RowLive, RowAdapter, RowAdapterWaiting,
			RowAdaptersFull, RowPrefill, RowDecode, RowJoins}),
		"endpoints": s.values(t, "EndpointOther", []any{EndpointOther, EndpointCompletions, EndpointChat, EndpointResponses,
			EndpointMessages, EndpointEmbeddings, EndpointScore, EndpointTokenize}),
		"wants": s.values(t, "WantCost", []any{WantCost, WantTick, WantFirstToken, WantComplete, WantKVEvents, WantHeld,
			WantClassify, WantPair, WantFilter, WantCandidates, WantPlan, WantSessions}),
		"errno":  s.values(t, "ErrNotFound", []any{ErrNotFound, ErrConflict, ErrInvalid, ErrForbidden, ErrLimit}),
		"str":    s.values(t, "StrSession", []any{StrSession, StrModel, StrWorker, StrTenant, StrCaller, StrLabel, StrHeader}),
		"levels": s.values(t, "LevelDebug", []any{LevelDebug, LevelInfo, LevelWarn, LevelError}),
		"cache":  s.values(t, "CacheKeep", []any{CacheKeep, CacheDrop, CachePrefetch, CacheCopy}),
		"kinds":  s.values(t, "EventStored", []any{EventStored, EventRemoved, EventCleared}),
		"tiers":  s.values(t, "TierGPU", []any{TierGPU, TierL1, TierL2}),
		"sizes": fmt.Sprintf("| what | bytes |\n| --- | --- |\n| a header | %d |\n| a row | %d |\n| an entry of the order area | %d |\n"+
			"| a frame of 64 rows | %d |\n| its row 2, from its start | %d |\n| Cost of row 2 | %d |\n| its order area | %d |\n",
			HeaderSize, RowSize, OrderSize, FrameSize(64), HeaderSize+2*RowSize,
			HeaderSize+2*RowSize+int(unsafe.Offsetof(Row{}.Cost)), Layouts[0].OrderAt(64)),
	}
	seen := map[string]bool{}
	got := regexp.MustCompile(`(?s)<!-- ([a-z]+) -->\n.*?<!-- end -->\n`).ReplaceAllStringFunc(string(b), func(part string) string {
		name := strings.Fields(part)[1]
		seen[name] = true
		table, ok := tables[name]
		if !ok {
			t.Errorf("the page has a table %q that nobody makes", name)
		}
		return "<!-- " + name + " -->\n" + table + "<!-- end -->\n"
	})
	for name := range tables {
		if !seen[name] {
			t.Errorf("the page has no table %q", name)
		}
	}
	switch {
	case got == string(b):
	case *update:
		if err := os.WriteFile(page, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/abi.md differs from this package: go test ./sdk/abi -run TestPage -update")
	}
	for _, want := range []string{Module, Memory, Marker, fmt.Sprint(MaxReasons), fmt.Sprint(MaxChain), fmt.Sprint(MaxText)} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// source has the comments and names of the declarations, which the compiler drops.
type source struct {
	comments map[string]string   // of fields, by Type.Field, and of constants
	consts   map[string][]string // names of a group, by its first
}

func newSource(t *testing.T) *source {
	t.Helper()
	s := &source{comments: map[string]string{}, consts: map[string][]string{}}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range files {
		if !strings.HasSuffix(d.Name(), ".go") || strings.HasSuffix(d.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), d.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			if g, ok := decl.(*ast.GenDecl); ok {
				s.take(g)
			}
		}
	}
	return s
}

// take keeps the names and comments of a declaration.
func (s *source) take(g *ast.GenDecl) {
	first := ""
	for _, spec := range g.Specs {
		switch d := spec.(type) {
		case *ast.TypeSpec:
			if of, ok := d.Type.(*ast.StructType); ok {
				for _, field := range of.Fields.List {
					for _, name := range field.Names {
						s.comments[d.Name.Name+"."+name.Name] = strings.TrimSpace(field.Comment.Text())
					}
				}
			}
		case *ast.ValueSpec:
			if g.Tok != token.CONST {
				continue
			}
			for _, name := range d.Names {
				if first == "" {
					first = name.Name
				}
				s.consts[first] = append(s.consts[first], name.Name)
				s.comments[name.Name] = strings.TrimSpace(d.Comment.Text())
			}
		}
	}
}

var wire = map[reflect.Kind]string{reflect.Uint32: "u32", reflect.Int32: "i32", reflect.Uint64: "u64", reflect.Int64: "i64",
	reflect.Float32: "f32", reflect.Float64: "f64"}

// fields is the table of a struct. A comment begins with the offset, which must be the compiler's.
func (s *source) fields(t *testing.T, name string, of reflect.Type) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| offset | type | field | |\n| --- | --- | --- | --- |\n")
	for i := range of.NumField() {
		f := of.Field(i)
		offset, text, _ := strings.Cut(s.comments[name+"."+f.Name], ":")
		if offset != fmt.Sprint(f.Offset) {
			t.Errorf("%s.%s is at %d; its comment says %q", name, f.Name, f.Offset, offset)
		}
		if strings.TrimSpace(text) == "" {
			t.Errorf("the comment of %s.%s does not say what it is", name, f.Name)
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", f.Offset, wire[f.Type.Kind()], f.Name, strings.TrimSpace(text))
	}
	return b.String()
}

// values is the table of a group of constants, which starts with first.
func (s *source) values(t *testing.T, first string, values []any) string {
	t.Helper()
	names := s.consts[first]
	if len(names) < len(values) || len(names) > len(values)+1 { // a mask of all may follow
		t.Errorf("the group of %s has %v; %d of them are in the page", first, names, len(values))
		return ""
	}
	var b strings.Builder
	b.WriteString("| value | name | |\n| --- | --- | --- |\n")
	for i, v := range values {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", v, names[i], s.comments[names[i]])
	}
	return b.String()
}

// functions is the table of exports or imports.
func functions(all []Func) string {
	var b strings.Builder
	b.WriteString("| name | parameters | result | since | |\n| --- | --- | --- | --- | --- |\n")
	types := func(list []Type) string {
		var names []string
		for _, t := range list {
			names = append(names, map[Type]string{I32: "i32", I64: "i64", F64: "f64"}[t])
		}
		return strings.Join(names, " ")
	}
	for _, f := range all {
		optional := ""
		if f.Optional {
			optional = "optional"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | 1.%d | %s |\n", f.Name, types(f.Params), types(f.Results), f.Minor, optional)
	}
	return b.String()
}
