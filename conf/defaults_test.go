package conf

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// The file that is printed, the file that serves and the defaults in Go are one.
func TestDefaultsTOMLIsTheDefaults(t *testing.T) {
	c, err := Parse([]byte(DefaultsTOML()), "warmpath.toml")
	if err != nil {
		t.Fatal(err)
	}
	if want := Default().Server; !reflect.DeepEqual(c.Server, want) {
		t.Errorf("server:\n got %+v\nwant %+v", c.Server, want)
	}
	if d := Default(); !reflect.DeepEqual(c.Cache, d.Cache) || !reflect.DeepEqual(c.Sessions, d.Sessions) ||
		!reflect.DeepEqual(c.KVCache, d.KVCache) || c.History != d.History || c.Tracing != d.Tracing {
		t.Errorf("cache, sessions and kv_cache:\n got %+v %+v %+v\nwant %+v %+v %+v", c.Cache, c.Sessions, c.KVCache, d.Cache, d.Sessions, d.KVCache)
	}
	want := DefaultPool()
	want.Name = "pool1"
	want.Options = map[string]any{}
	want.Workers = []Worker{{URL: "http://127.0.0.1:9001", ID: "w-e25838", MetricsURL: "http://127.0.0.1:9001/metrics", Weight: 1,
		Cost: 1, Labels: map[string]string{}, Role: "both"}}
	if !reflect.DeepEqual(c.Pools, []Pool{want}) {
		t.Errorf("pools:\n got %+v\nwant %+v", c.Pools, []Pool{want})
	}
	if got, want := WorkerAt("http://127.0.0.1:9001"), want.Workers[0]; got.ID != want.ID || got.Cost != 1 || got.Weight != 1 {
		t.Errorf("WorkerAt = %+v; want %+v", got, want)
	}
	s := DefaultStrategy()
	s.Options, s.Allow = map[string]any{}, []string{}
	if want := map[string]Strategy{"prefixaware": s}; !reflect.DeepEqual(c.Strategies, want) {
		t.Errorf("strategies:\n got %+v\nwant %+v", c.Strategies, want)
	}
}

// withExamples is the file with its commented tables put in force: a table that does something by being there has no default
// form, and stands as "# [[keys]]" with its keys up to the next empty line.
func withExamples() string {
	lines := strings.Split(DefaultsTOML(), "\n")
	inside := false
	for i, line := range lines {
		inside = strings.HasPrefix(line, "# [") || inside && line != ""
		if inside {
			lines[i] = strings.TrimPrefix(line, "# ")
		}
	}
	return strings.Join(lines, "\n")
}

// The commented tables are in force when their marks go, and show the defaults too.
func TestExamplesInDefaultsTOML(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "team-a.key"), "example-of-a-key-1\n")
	c, err := Parse([]byte(withExamples()), filepath.Join(dir, "warmpath.toml"))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultKey()
	want.Name, want.File = "team-a", filepath.Join(dir, "team-a.key")
	if !reflect.DeepEqual(c.Keys, []Key{want}) {
		t.Errorf("keys = %+v; want %+v", c.Keys, want)
	}
}

func TestDefaultsTOMLNamesEveryKey(t *testing.T) {
	written := inForce.locate(withExamples()).lines
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		for _, key := range keysOf(typ) {
			f, _ := field(typ, key)
			at := child(path, key)
			if written[at] == 0 {
				t.Errorf("warmpath.toml does not show %s", at)
			}
			switch {
			case f.Type.Kind() == reflect.Struct:
				walk(at, f.Type)
			case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
				walk(elem(at, 0), f.Type.Elem())
			case f.Type.Kind() == reflect.Map && f.Type.Elem().Kind() == reflect.Struct:
				walk(child(at, "prefixaware"), f.Type.Elem())
			}
		}
	}
	walk("", reflect.TypeFor[Config]())
}

// The smallest file of README and of the plan serves; everything else has its default.
func TestSmallestConfig(t *testing.T) {
	c, err := Load("../testdata/conf/smallest.toml")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c.Server, Default().Server) {
		t.Errorf("server: got %+v", c.Server)
	}
	p := c.Pools[0]
	if p.Workers[0].URL != "http://127.0.0.1:9001" || p.Workers[0].ID != DefaultID("http://127.0.0.1:9001") || p.HealthInterval != DefaultPool().HealthInterval {
		t.Errorf("pool: got %+v", p)
	}
	if got := c.Strategies["mine"]; !strings.HasSuffix(got.Path, "testdata/conf/mine.wasm") || got.Fuel != DefaultStrategy().Fuel {
		t.Errorf("strategy: got %+v", got)
	}
}

func TestEachElementStartsAsItsDefault(t *testing.T) {
	c, err := Parse([]byte(`
[[pools]]
models = ["a"]
header_timeout = "1s"
workers = [{url = "http://a"}, {url = "http://b", weight = 2, id = "second"}]
[[pools]]
models = ["b"]
[[pools.workers]]
url = "https://c:1/"
[strategies.session]
fuel = 7
`), "x.toml")
	if err != nil {
		t.Fatal(err)
	}
	a, b := c.Pools[0], c.Pools[1]
	if a.HeaderTimeout == b.HeaderTimeout || b.HeaderTimeout != DefaultPool().HeaderTimeout {
		t.Errorf("header_timeout = %v, %v", a.HeaderTimeout, b.HeaderTimeout)
	}
	if a.Workers[0].Weight != 1 || a.Workers[1].Weight != 2 || a.Workers[1].ID != "second" {
		t.Errorf("workers = %+v", a.Workers)
	}
	if got := b.Workers[0]; got.URL != "https://c:1" || got.MetricsURL != "https://c:1/metrics" || got.ID != DefaultID("https://c:1") {
		t.Errorf("worker = %+v", got)
	}
	if s := c.Strategies["session"]; s.Fuel != 7 || s.PickTimeout != 5*time.Millisecond || s.MemoryMB != DefaultStrategy().MemoryMB {
		t.Errorf("strategy = %+v", s)
	}
	if got := slices.Sorted(maps.Keys(c.Strategies)); len(got) != 1 {
		t.Errorf("strategies = %v", got)
	}
}

func TestDefaultsAreFreshEachTime(t *testing.T) {
	p := DefaultPool()
	p.Models[0] = "changed"
	if DefaultPool().Models[0] != "*" {
		t.Error("DefaultPool shares its slice")
	}
}

func TestLoadRefusesWhatIsNoFile(t *testing.T) {
	f := func(path, want string) {
		t.Helper()
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%s) = %v; want %q", path, err, want)
		}
	}
	big := t.TempDir() + "/big.toml"
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	f("absent.toml", "no such file")
	f(t.TempDir(), "not a regular file")
	f("/dev/null", "not a regular file")
	f(big, "longer than")
}
