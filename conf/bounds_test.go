package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
)

// TestBombsAreRefusedAtOnce: files that made the parser, or the search for lines behind it, take gigabytes or minutes.
func TestBombsAreRefusedAtOnce(t *testing.T) {
	deep := func(open, shut string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(shut, n) }
	f := func(name, doc string, line int, what string) {
		t.Helper()
		began := time.Now()
		_, err := Parse([]byte("\n# a comment with [[[[\n"+doc), "bomb.toml")
		if took := time.Since(began); took > 10*time.Second { // half a second at most, on a machine that is not busy
			t.Errorf("%s: refused after %v", name, took)
		}
		p, ok := err.(Problems)
		if !ok || len(p) != 1 || p[0].Line != line || !strings.Contains(p[0].What, what) {
			t.Errorf("%s: got %.300v; want line %d, %q", name, err, line, what)
		}
	}
	const nested, long, many = "deep in one another", "is longer than", "keys and items"
	f("lists that never close", "x="+strings.Repeat("[", 200_000), 3, nested)
	f("lists that close", "x="+deep("[", "]", 200_000), 3, nested)
	f("lists over many lines", "x="+deep("[\n", "\n]", 20_000), 66, nested)
	f("inline tables", "x="+deep("{a=", "}", 20_000), 3, nested)
	f("inline tables that never close", "x="+strings.Repeat("{a=", 20_000), 3, nested)
	f("inline tables in lists", "[server]\nx="+deep("[{a=", "}]", 20_000), 4, nested)
	f("a key of many parts", "a"+strings.Repeat(".a", 20_000)+"=1", 3, nested)
	f("a key of many parts in lines", strings.Repeat("a"+strings.Repeat(".b", 10_000)+"=1\n", 3), 3, nested)
	f("a header of many parts", "[a"+strings.Repeat(".a", 20_000)+"]", 3, nested)
	f("a header of quoted parts", "[a"+strings.Repeat(`."x"`, 20_000)+"]", 3, nested)
	f("parts with blanks", "a"+strings.Repeat(" . a", 20_000)+"=1", 3, nested)
	f("a long key", strings.Repeat("a", 1<<20)+"=1", 3, long)
	f("a long quoted key", `"`+strings.Repeat("[", 1<<20)+`"=1`, 3, long)
	f("a long header over many keys", "["+strings.Repeat("a", 300)+"]\n"+strings.Repeat("b=1\n", 1000), 3, long)
	f("many items", "x=["+strings.Repeat("1,", 1_000_000)+"]", 3, many)
	f("many headers", strings.Repeat("[[a]]\n", 600_000), 500_003, many)
}

func TestWhatABoundMustNotRefuse(t *testing.T) {
	f := func(name, doc string) {
		t.Helper()
		var tree map[string]any
		if _, err := toml.Decode(doc, &tree); err != nil {
			t.Fatalf("%s is no TOML: %v", name, err)
		}
		if l := inForce.locate(doc); l.what != "" {
			t.Errorf("%s: line %d: %s", name, l.over, l.what)
		}
	}
	f("brackets in text", `a = "`+strings.Repeat("[{", 1000)+`"`)
	f("brackets in raw text", `a = '`+strings.Repeat("[{", 1000)+`'`)
	f("brackets in long text", "a = \"\"\"\n"+strings.Repeat("[{ \"\" \\\" \n", 1000)+"\"\"\"\"\"\nb=1")
	f("brackets in long raw text", "a = '''\n"+strings.Repeat("[{ '' \\ \n", 1000)+"'''''\nb=1")
	f("brackets in a comment", "# "+strings.Repeat("[", 1000)+"\na=1 # "+strings.Repeat("{", 1000))
	f("dots in text", `a = "`+strings.Repeat(".", 1000)+`"`)
	f("long text", `a = "`+strings.Repeat("x", 1<<20)+`"`)
	f("a quoted key with a bracket", `"[[{{" = 1`)
	f("many short lists", "a = ["+strings.Repeat("[1.5, 2.5],\n", 10_000)+"]")
	f("many pairs", "a = {"+strings.Repeat("", 1)+"x = 1.5, y = [1], z = {a = 2}}\n[b]\nc = 1\n[[d]]\ne.f.g = 2")
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "[[pools.workers]]\nurl = \"http://10.0.0.1:%d\"\nid = \"w%d\"\nmetrics_url = \"x\"\nkv_tokens = 1\nweight = 1.5\n", i, i)
	}
	f("10,000 workers", b.String())
	f("64 levels", "a = "+strings.Repeat("[", 63)+strings.Repeat("]", 63))
	example, err := os.ReadFile(filepath.Join("warmpath.toml"))
	if err != nil {
		t.Fatal(err)
	}
	f("the example", string(example))
}

// height is how many levels a parsed value has.
func height(v any) int {
	most := -1
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			most = max(most, height(e))
		}
		if most < 0 {
			return 0
		}
	case []any:
		most = 0
		for _, e := range v {
			most = max(most, height(e))
		}
	case []map[string]any:
		most = 0
		for _, e := range v {
			most = max(most, height(e))
		}
	default:
		return 0
	}
	return most + 1
}

// FuzzBounds holds the bounds against the library, with so low a bound that a fuzzer finds it: what it refuses is deeper than
// the bound or no TOML, and what it lets through is at most twice as deep, as it does not know which tables of a header are lists.
func FuzzBounds(f *testing.F) {
	for _, doc := range []string{
		"a = [[[[1]]]]", "a.b.c.d.e = 1", "[a.b.c.d.e]\nf = 1", "[[a.b]]\nc = {d = {e = [1]}}", `a = "[[[[[" # [[[[[[`,
		"a = '''\n[[[[\n'''''\nb = [[1],\n[2]]", "a = \"\"\"x\\\"\"\"\"\"\"\nb = 1", `"a.b.c.d.e" . 'f.g' = 1.5`, "a = [1.5, {b.c = 1, d = [\n1 # ]\n]}]",
		"a = {}\nb = []\n[c]", "a = \"\\\\\"\n[b.c.d.e.f]", "a = \"x\"\"\n", "[a]]\nb = 1", "a = ]", "a = 1979-05-27T07:32:00.999-07:00", "\"\" = 1\n''.\"\".'' = 2",
		"a = {b = 1,\n# c\nd.e.f.g = [1]}", "a = \"\"\"\"\"\"\nb = [[[[1]]]]", "a = ''''''\nb.c.d.e.f = 1", "a = \"\"\"\"x\"\"\"\"\n[b]",
	} {
		f.Add(doc)
	}
	low := bounds{depth: 4, path: 1 << 30, values: 1 << 30}
	f.Fuzz(func(t *testing.T, doc string) {
		if len(doc) > 1<<12 {
			return
		}
		l := low.locate(doc)
		line, what := l.over, l.what
		var tree map[string]any
		if _, err := toml.Decode(doc, &tree); err != nil {
			return
		}
		h := height(tree)
		if line > 0 && h <= low.depth {
			t.Errorf("%q has %d levels and is refused: line %d: %s", doc, h, line, what)
		}
		if line == 0 && h > 2*low.depth {
			t.Errorf("%q has %d levels and is let through", doc, h)
		}
		if line > 1+strings.Count(doc, "\n") {
			t.Errorf("%q has no line %d", doc, line)
		}
	})
}

// TestOfManyProblemsSomeAreTold: a log line and a terminal have an end.
func TestOfManyProblemsSomeAreTold(t *testing.T) {
	_, err := Parse([]byte(strings.Repeat("[[pools]]\nname = \"a b\"\n", 20_000)), "many.toml")
	p, ok := err.(Problems)
	if !ok || len(p) != maxProblems+1 || !strings.Contains(p[maxProblems].What, "more problems") || len(err.Error()) > 30_000 {
		t.Errorf("%d problems in %d bytes; want %d and how many more", len(p), len(err.Error()), maxProblems)
	}
}
