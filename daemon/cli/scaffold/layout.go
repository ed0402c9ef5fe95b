package scaffold

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"unicode"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

// record is a structure of the frame.
type record struct {
	name   string
	about  string
	size   uintptr
	fields []field
}

type field struct {
	name   string // as in sdk/abi
	kind   reflect.Kind
	count  int // of elements, if it is an array; 0 = it is none
	offset uintptr
	about  string
}

// records reads the frame's structures from sdk/abi: names, kinds and offsets by reflection, their meaning from the
// comments in its source.
func records() ([]record, error) {
	var all []record
	for _, r := range []struct {
		file string
		of   reflect.Type
	}{{"abi/header.go", reflect.TypeFor[abi.Header]()}, {"abi/row.go", reflect.TypeFor[abi.Row]()}} {
		about, meanings, err := comments(r.file, r.of.Name())
		if err != nil {
			return nil, err
		}
		rec := record{name: r.of.Name(), about: about, size: r.of.Size()}
		for _, f := range reflect.VisibleFields(r.of) {
			one := field{name: f.Name, kind: f.Type.Kind(), offset: f.Offset, about: meanings[f.Name]}
			if one.kind == reflect.Array {
				one.kind, one.count = f.Type.Elem().Kind(), f.Type.Len()
			}
			rec.fields = append(rec.fields, one)
		}
		all = append(all, rec)
	}
	return all, nil
}

// comments returns the source's comments on a type and on each of its fields.
func comments(file, name string) (about string, fields map[string]string, err error) {
	src, err := sdk.Source.ReadFile(file)
	if err != nil {
		return "", nil, fmt.Errorf("scaffold: %w", err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ParseComments)
	if err != nil {
		return "", nil, fmt.Errorf("scaffold: %w", err)
	}
	fields = map[string]string{}
	for _, d := range f.Decls {
		g, _ := d.(*ast.GenDecl)
		if g == nil || g.Tok != token.TYPE || g.Specs[0].(*ast.TypeSpec).Name.Name != name {
			continue
		}
		about = strings.TrimSpace(g.Doc.Text())
		for _, one := range g.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
			_, text, _ := strings.Cut(strings.TrimSpace(one.Comment.Text()), ": ")
			for _, n := range one.Names {
				fields[n.Name] = text
			}
		}
	}
	return about, fields, nil
}

// dialect is how a language writes the layout.
type dialect struct {
	file       string
	begin, end string // around the structures
	comment    string // before a line of comment
	open       string // a structure of %s
	line       string // a field: name, type
	array      string // a field: name, type, count
	close      string // the end of the structure %[1]s of %[2]d bytes
	kinds      map[reflect.Kind]string
}

var (
	cKinds = map[reflect.Kind]string{reflect.Uint32: "uint32_t", reflect.Int32: "int32_t", reflect.Uint64: "uint64_t",
		reflect.Int64: "int64_t", reflect.Float32: "float", reflect.Float64: "double"}
	shortKinds = map[reflect.Kind]string{reflect.Uint32: "u32", reflect.Int32: "i32", reflect.Uint64: "u64",
		reflect.Int64: "i64", reflect.Float32: "f32", reflect.Float64: "f64"}
)

// dialectOf returns that of a language. What stands around the structures is the language's glue in templates.
func dialectOf(language string) (dialect, error) {
	read := func(name string) (string, error) {
		b, err := templates.ReadFile("template/glue/" + name)
		return string(b), err
	}
	d := dialect{comment: "// "}
	var glue string
	switch language {
	case "c":
		d.file, glue, d.kinds = "warmpath.h", "warmpath.h", cKinds
		d.open, d.line, d.array = "struct wp_%s {\n", "  %[2]s %[1]s;", "  %[2]s %[1]s[%[3]d];"
		d.close = "};\n_Static_assert(sizeof(struct wp_%s) == %d, \"the frame's layout\");\n\n"
	case "assemblyscript":
		d.file, glue, d.kinds = "assembly/warmpath.ts", "warmpath.ts", shortKinds
		d.open, d.line, d.array = "@unmanaged\nexport class %s {\n", "  %s: %s;", "  %[1]s0: %[2]s;"
		d.close = "}\n\n"
	case "rust":
		d.file, glue, d.kinds = "src/warmpath.rs", "warmpath.rs", shortKinds
		d.open = "#[repr(C)]\n#[derive(Clone, Copy, Default)]\npub struct %s {\n"
		d.line, d.array = "    pub %s: %s,", "    pub %s: [%s; %d],"
		d.close = "}\nconst _: () = assert!(core::mem::size_of::<%s>() == %d);\n\n"
	}
	text, err := read(glue)
	if err != nil {
		return d, fmt.Errorf("scaffold: %w", err)
	}
	var found bool
	d.begin, d.end, found = strings.Cut(text, "@STRUCTURES@\n")
	if !found {
		return d, fmt.Errorf("BUG: scaffold: the glue %s has no place for the structures", glue)
	}
	return d, nil
}

// layout returns the file with the frame's layout and the glue to the host, in a language.
func layout(language string) (file string, text []byte, err error) {
	d, err := dialectOf(language)
	if err != nil {
		return "", nil, err
	}
	all, err := records()
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	b.WriteString(d.begin)
	for _, r := range all {
		name := r.name
		if language == "c" {
			name = snake(name)
		}
		for _, l := range strings.Split(r.about, "\n") {
			b.WriteString(strings.TrimSpace(d.comment+l) + "\n")
		}
		fmt.Fprintf(&b, d.open, name)
		for _, f := range r.fields {
			b.WriteString(d.one(f))
		}
		if strings.Contains(d.close, "%") {
			fmt.Fprintf(&b, d.close, name, r.size)
		} else {
			b.WriteString(d.close)
		}
	}
	b.WriteString(d.end)
	return d.file, []byte(b.String()), nil
}

// one writes a field with its offset and meaning.
func (d *dialect) one(f field) string {
	name, kind := snake(f.name), d.kinds[f.kind]
	line := fmt.Sprintf(d.line, name, kind)
	if f.count > 0 {
		line = fmt.Sprintf(d.array, name, kind, f.count)
		if !strings.Contains(d.array, "%[3]") && !strings.Contains(d.array, "; %d") { // no arrays: one field each
			var all strings.Builder
			for i := range f.count {
				fmt.Fprintf(&all, "%s\n", strings.Replace(line, "0:", fmt.Sprint(i, ":"), 1))
			}
			return all.String()
		}
	}
	return strings.TrimRight(fmt.Sprintf("%s %s%d: %s", line, d.comment, f.offset, f.about), ": ") + "\n"
}

// snake turns FreeGPU into free_gpu, and InvBWL1 into inv_bwl1.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if unicode.IsUpper(r) && i > 0 && !unicode.IsUpper(rune(s[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
