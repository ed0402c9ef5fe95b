package conf

import (
	"maps"
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

func TestPoolFor(t *testing.T) {
	c := &Config{Pools: []Pool{
		{Name: "1", Models: []string{"org/*", "exact"}},
		{Name: "2", Models: []string{"other"}},
		{Name: "3", Models: []string{"*"}},
	}}
	f := func(model, want string) {
		t.Helper()
		if p := c.PoolFor(model); p == nil || p.Name != want {
			t.Errorf("PoolFor(%q) = %v; want %s", model, p, want)
		}
	}
	f("org/a", "1")
	f("org/a/b", "1")
	f("org", "3")
	f("exact", "1")
	f("exactly", "3")
	f("other", "2")
	f("", "1")
	c.Pools = c.Pools[:2]
	if p := c.PoolFor("none"); p != nil {
		t.Errorf("PoolFor(none) = %v; want nil", p)
	}
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
