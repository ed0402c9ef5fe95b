// Contract writes what a module and its host agree on, sdk/abi, as a file of each language that warmpath plugin new
// knows, and as WIT: constants, records with their offsets, imports and exports with their comments, and around them
// the helpers that the SDK of Go has too. A template a language is all that is written by hand.
//
//	testdata/run contract        # or: go generate ./daemon/cli/scaffold
package main

import (
	"bytes"
	"embed"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"unicode"
)

//go:embed *.tmpl
var templates embed.FS

func main() {
	root := flag.String("root", ".", "the project's folder")
	flag.Parse()
	c, err := read(*root)
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range languages {
		text, err := l.write(c)
		if err == nil {
			err = os.WriteFile(filepath.Join(*root, l.path()), text, 0o644)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

// folder is where the files stand, and the binary takes them from.
const folder = "daemon/cli/scaffold/contract"

// language is how one writes names and types.
type language struct {
	file   string
	types  map[string]string // of the contract: u32, i64, f64, in (an address to read from), out (one to write to)
	prefix string            // of a constant's name
	apart  bool              // it has not all of the contract, or in another form
}

var languages = []language{
	{file: "warmpath.h", prefix: "WP_", types: map[string]string{"u16": "uint16_t", "u32": "uint32_t", "i32": "int32_t",
		"u64": "uint64_t", "i64": "int64_t", "f32": "float", "f64": "double", "in": "const void *", "out": "void *",
		"": "void"}},
	{file: "warmpath.rs", types: map[string]string{"in": "*const u8", "out": "*mut u8"}},
	{file: "warmpath.ts", types: map[string]string{"in": "usize", "out": "usize", "": "void"}},
	{file: "warmpath.mjs", apart: true},
	{file: "warmpath.zig", types: map[string]string{"in": "[*]const u8", "out": "[*]u8", "": "void"}},
	{file: "warmpath.wit", apart: true, types: map[string]string{"in": "u32", "out": "u32", "i32": "s32", "i64": "s64"}},
}

// path returns where the file stands. WIT is a page of the documentation, and the others belong to projects.
func (l language) path() string {
	if l.file == "warmpath.wit" {
		return filepath.Join("docs", l.file)
	}
	return filepath.Join(folder, l.file)
}

// write fills the language's template with the contract.
func (l language) write(c *contract) ([]byte, error) {
	name := strings.TrimPrefix(filepath.Ext(l.file), ".") + ".tmpl"
	t, err := template.New(name).Funcs(template.FuncMap{
		"snake": snake,
		"kebab": kebab,
		"upper": func(s string) string { return l.prefix + strings.ToUpper(snake(s)) },
		"type": func(s string) string {
			if t, ok := l.types[s]; ok {
				return t
			}
			return s
		},
		"line": func(s string) string { return strings.TrimRight(s, " ") },
	}).ParseFS(templates, name)
	if err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, c); err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	return b.Bytes(), nil
}

// kebab turns KVUsage into kv-usage, as WIT writes names. Words of WIT's own take a percent sign.
func kebab(s string) string {
	name := strings.ReplaceAll(snake(s), "_", "-")
	if slices.Contains([]string{"own", "flags"}, name) {
		return "%" + name
	}
	return name
}

// snake turns KVUsage into kv_usage, and InvBWL1 into inv_bw_l1: a word begins with a capital behind another letter,
// and with the last capital before a small letter or a digit.
func snake(s string) string {
	var b strings.Builder
	r := []rune(s)
	for i := range r {
		if i > 0 && unicode.IsUpper(r[i]) && r[i-1] != '_' && (!unicode.IsUpper(r[i-1]) ||
			i+1 < len(r) && !unicode.IsUpper(r[i+1]) && r[i+1] != '_') {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r[i]))
	}
	return b.String()
}
