package conf

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOptionValuesPoolOverStrategy(t *testing.T) {
	c, err := Parse([]byte(`
[[pools]]
models = ["a"]
strategy = "session"
options = { b = 2.5, c = true }
workers = [{url = "http://a"}]
[[pools]]
workers = [{url = "http://b"}]
[strategies.session]
options = { a = "text", b = 1, d = 10, e = 2.0 }
`), "x.toml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "text", "b": "2.5", "c": "true", "d": "10", "e": "2"}
	if got := c.OptionValues(&c.Pools[0]); !maps.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
	if got := c.OptionValues(&c.Pools[1]); got == nil || len(got) != 0 {
		t.Errorf("no options: got %v; want an empty map", got)
	}
	if v := c.Strategies["session"].Options["b"]; v != int64(1) {
		t.Errorf("merging changed the strategy's own options: b = %v", v)
	}
}

func TestWatchedFiles(t *testing.T) {
	c, err := Parse([]byte(`
[[pools]]
models = ["a"]
strategy = "mine"
workers = [{url = "http://a"}]
[[pools]]
models = ["b"]
strategy = "mine"
workers = [{url = "http://b"}]
[[pools]]
strategy = "other"
workers = [{url = "http://c"}]
[strategies.mine]
path = "m/mine.wasm"
[strategies.other]
path = "/abs/other.wasm"
[strategies.unused]
path = "unused.wasm"
`), "/etc/warmpath/x.toml")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.WatchedFiles(), []string{"/etc/warmpath/m/mine.wasm", "/abs/other.wasm"}; !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestServes(t *testing.T) {
	f := func(model string, want bool, patterns ...string) {
		t.Helper()
		if p := (&Pool{Models: patterns}); p.Serves(model) != want {
			t.Errorf("Serves(%q) of %q = %v; want %v", model, patterns, !want, want)
		}
	}
	f("org/a", true, "exact", "org/*")
	f("org/a/b", true, "org/*")
	f("org", false, "org/*")
	f("exact", true, "org/*", "exact")
	f("exactly", false, "exact")
	f("none", false)
	f("any", true, "*")
	f("", false, "exact")
}

func TestCacheDir(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/xdg")
	t.Setenv("HOME", "/home/x")
	f := func(set, want string) {
		t.Helper()
		if got := (&Server{ModuleCache: set}).CacheDir(); got != want && !(set == "" && strings.HasSuffix(got, "/warmpath")) {
			t.Errorf("CacheDir of %q = %q; want %q", set, got, want)
		}
	}
	f("off", "")
	f("/var/cache/wp", "/var/cache/wp")
	f("", "/xdg/warmpath")
}

func TestOffIsNoPath(t *testing.T) {
	c, err := Parse([]byte("[server]\nmodule_cache = \"off\"\n[[pools]]\nworkers = [{url = \"http://a\"}]"), "/etc/x.toml")
	if err != nil || c.Server.CacheDir() != "" {
		t.Errorf("got %v, %v", c, err)
	}
}

func TestEditDistance(t *testing.T) {
	f := func(a, b string, want int) {
		t.Helper()
		if got := editDistance(a, b); got != want {
			t.Errorf("editDistance(%q, %q) = %d; want %d", a, b, got, want)
		}
	}
	f("", "", 0)
	f("", "abc", 3)
	f("abc", "", 3)
	f("kitten", "sitting", 3)
	f("listen", "lisen", 1)
}

// TestUnused: a table of a strategy that serves, shadows or is a canary is used; also the one in whose place another was
// activated.
func TestUnused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "pushed.wasm"), "\x00asm")
	write(t, filepath.Join(dir, "live.wasm"), "\x00asm")
	write(t, filepath.Join(dir, activationsFile), "[pools.p]\nstrategy = 'live'\ninstead_of = 'session'\n")
	c, err := Parse([]byte(`
[server]
strategies_dir = "`+dir+`"
[[pools]]
name = "p"
strategy = "session"
workers = [{url = "http://a"}, {url = "http://b"}]
shadow = [{strategy = "seen"}]
canary = [{strategy = "some", percent = 5}]
[strategies.session]
[strategies.live]
fuel = 50000
[strategies.seen]
path = "seen.wasm"
[strategies.some]
path = "some.wasm"
[strategies.forgotten]
path = "no-such-file.wasm"
[strategies.roundrobin]
`), "/etc/warmpath/x.toml")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range Notes(c) {
		got = append(got, fmt.Sprintf("%d %s", p.Line, p.Key))
	}
	if want := []string{"17 strategies.forgotten", "19 strategies.roundrobin"}; !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}
