package conf

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

func TestLocateLines(t *testing.T) {
	const doc = `a = 1            # line 1
b.c = "x # no comment"
"odd name".d = [
  1, # one
  { e = """
three "lines"
""", f = 2 },
]
[[p]]
x = '''
[not.a.table]'''
[[p.w]]
x = 1
[[p.w]]
x = "\"]"
[[p]]
[[p.w]]
'y' = { z = [{}, {u = 1979-05-27 07:32:00}] }
[t.u]
v = 1
`
	lines := inForce.locate(doc).lines
	f := func(path string, want int) {
		t.Helper()
		if lines[path] != want {
			t.Errorf("%s: line %d; want %d", path, lines[path], want)
		}
	}
	f("a", 1)
	f("b.c", 2)
	f(`"odd name".d`, 3)
	f(`"odd name".d[0]`, 4)
	f(`"odd name".d[1].e`, 5)
	f(`"odd name".d[1].f`, 7)
	f("p", 9)
	f("p[0].x", 10)
	f("p[0].w[0].x", 13)
	f("p[0].w[1]", 14)
	f("p[0].w[1].x", 15)
	f("p[1]", 16)
	f("p[1].w[0]", 17)
	f("p[1].w[0].y.z[1].u", 18)
	f("t.u.v", 20)
	f("not.a.table", 0)
}

// paths flattens the library's tree into the paths that locate must know.
func paths(path string, v any, into map[string]bool) {
	if path != "" {
		into[path] = true
	}
	switch v := v.(type) {
	case map[string]any:
		for k, item := range v {
			paths(child(path, k), item, into)
		}
	case []map[string]any:
		for i, item := range v {
			paths(elem(path, i), item, into)
		}
	case []any:
		for i, item := range v {
			paths(elem(path, i), item, into)
		}
	}
}

// FuzzLocate holds the locator to the library: on each accepted document both know the same paths. On others it ends.
func FuzzLocate(f *testing.F) {
	seeds, _ := filepath.Glob("../testdata/conf/bad/*.txt")
	for _, name := range append(seeds, "../testdata/conf/smallest.toml", "warmpath.toml") {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		input, _, _ := strings.Cut(string(data), "-- want --")
		f.Add(input)
	}
	f.Add("a = [[1, 2], [\"]\"]]\r\nb = '''x''''\r\nc = \"\"\"\\\"\"\"\"\"\"\r\n\"\" = 1")
	f.Add("[a.b]\n[a]\n[[c.d]]\n[c.d.e]\nf.g = {h.i = 1, 'j' = -0.5e3}")
	f.Fuzz(func(t *testing.T, doc string) {
		lines := inForce.locate(doc).lines
		var tree map[string]any
		if _, err := toml.Decode(doc, &tree); err != nil || strings.HasPrefix(doc, "\ufeff") {
			return
		}
		want := make(map[string]bool)
		paths("", tree, want)
		got, known := slices.Sorted(maps.Keys(lines)), slices.Sorted(maps.Keys(want))
		if !slices.Equal(got, known) {
			t.Fatalf("document %q\nlocate  %q\nlibrary %q", doc, got, known)
		}
		for path, line := range lines {
			if line < 1 || line > strings.Count(doc, "\n")+1 {
				t.Fatalf("%s: line %d of %q", path, line, doc)
			}
		}
	})
}

// FuzzParse holds that no input panics, and that each error carries a remedy.
func FuzzParse(f *testing.F) {
	f.Add(DefaultsTOML())
	f.Add("pools = [1, {workers = [[]]}]\nstrategies = {a = {options = {x = nan}}}")
	f.Add("server = 5")
	f.Add("[[pools]]\nworkers = 5\n[strategies]\nx = {path = 1}")
	f.Fuzz(func(t *testing.T, doc string) {
		c, err := Parse([]byte(doc), "x.toml")
		if err == nil {
			for i := range c.Pools {
				c.OptionValues(&c.Pools[i])
			}
			return
		}
		for _, p := range err.(Problems) {
			if p.What == "" || p.Remedy == "" {
				t.Fatalf("%q: %+v", doc, p)
			}
		}
	})
}
