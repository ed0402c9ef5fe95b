package conf

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// stored writes a configuration with a folder of modules, which has files of these names.
func stored(t *testing.T, text string, modules ...string) (path string) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "modules"), 0o700))
	for _, name := range modules {
		write(t, filepath.Join(dir, "modules", name), "a module")
	}
	path = filepath.Join(dir, "warmpath.toml")
	write(t, path, "[server]\nstrategies_dir = 'modules'\n"+text)
	return path
}

const oneWorker = "[[pools.workers]]\nurl = 'http://a'\n"

func TestModulesOfAFolderAreStrategies(t *testing.T) {
	path := stored(t, "[[pools]]\nstrategy = 'one'\n"+oneWorker+
		"[strategies.two]\nfuel = 7\n[strategies.three]\npath = 'three.wasm'\n[strategies.to-come]\nallow = ['kv']\nsha256 = '"+strings.Repeat("0", 64)+"'\n",
		"one.wasm", "two.wasm", "three.wasm", "README.md", ".DS_Store", "one.wasm~", ".one.wasm.swp", "._one.wasm",
		"one (1).wasm", "one copy.wasm", ".wasm", ".new123.wasm")
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	f := func(name, path string, fuel int64) {
		t.Helper()
		if s := c.Strategies[name]; s.Path != path || s.Fuel != fuel {
			t.Errorf("%s is %+v; want %s and fuel %d", name, s, path, fuel)
		}
	}
	f("one", filepath.Join(dir, "modules/one.wasm"), DefaultStrategy().Fuel)
	f("two", filepath.Join(dir, "modules/two.wasm"), 7)
	f("three", filepath.Join(dir, "three.wasm"), DefaultStrategy().Fuel) // the file's word
	f("to-come", "", DefaultStrategy().Fuel)
	if len(c.Strategies) != 4 || c.HasModule("to-come") || !c.HasModule("one") || !c.HasModule("kvaware") || c.HasModule("none") {
		t.Errorf("%+v", c.Strategies)
	}
	if files := c.WatchedFiles(); !slices.Contains(files, filepath.Join(dir, "modules/one.wasm")) {
		t.Errorf("watched are %q; want the module that serves", files)
	}
}

func TestFoldersThatAreRefused(t *testing.T) {
	f := func(text, want string, modules ...string) {
		t.Helper()
		if _, err := Load(stored(t, text, modules...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	pool := "[[pools]]\n" + oneWorker
	f(pool, "prefixaware.wasm has the name of a built-in", "prefixaware.wasm")
	f("[[pools]]\nstrategy = 'two words'\n"+oneWorker, `"two words" is no name`, "two words.wasm")
	f("[[pools]]\nstrategy = 'to-come'\n"+oneWorker+"[strategies.to-come]\nfuel = 1\n", "to-come.wasm yet; bring the module there")
	f(pool+"[strategies.kvaware]\nsha256 = '"+strings.Repeat("0", 64)+"'\n", "a built-in has no file")
	f("[[pools]]\nstrategy = 'none'\n"+oneWorker, "or is NAME.wasm in server.strategies_dir")
	var many []string
	for i := range MaxStored + 1 {
		many = append(many, "m"+strings.Repeat("x", i%60)+string(rune('a'+i/60))+".wasm")
	}
	f(pool, "over 64 modules", many...)
	path := stored(t, pool)
	must(t, os.Remove(filepath.Join(filepath.Dir(path), "modules")))
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "make the folder") {
		t.Errorf("%v; want to make the folder", err)
	}
	path = stored(t, pool)
	write(t, filepath.Join(filepath.Dir(path), "modules", activationsFile), "[pools")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), activationsFile) {
		t.Errorf("%v; want the file that is wrong", err)
	}
}

// TestActivations: what was activated serves, as long as the file names whom it named then and the module is there.
func TestActivations(t *testing.T) {
	path := stored(t, `
[[pools]]
name = "a"
models = ["a"]
strategy = "roundrobin"
options = { x = 1 }
canary = [{strategy = "mine", percent = 5}, {strategy = "session", percent = 5}]
[[pools.workers]]
url = "http://a"
[[pools]]
name = "b"
models = ["b"]
[[pools.workers]]
url = "http://b"
[[pools]]
name = "c"
models = ["c"]
[[pools.workers]]
url = "http://c"
`, "mine.wasm")
	dir := filepath.Join(filepath.Dir(path), "modules")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	must(t, ChangeActivations(dir, func(all map[string]Activation) {
		all["a"] = Activation{Strategy: "mine", InsteadOf: "roundrobin", Since: at}
		all["b"] = Activation{Strategy: "mine", InsteadOf: "session", Since: at}
		all["c"] = Activation{Strategy: "gone", InsteadOf: "prefixaware", Since: at}
		all["no longer a pool"] = Activation{Strategy: "mine", InsteadOf: "x", Since: at}
	}))
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	a, b, third := &c.Pools[0], &c.Pools[1], &c.Pools[2]
	if a.Strategy.Orders() != "mine" || a.Options != nil || len(a.Canary) != 1 || a.Canary[0].Strategy != "session" || c.Activated["a"].Since != at {
		t.Errorf("%+v, %+v; want mine, without the options of roundrobin, and no canary of its own", a, c.Activated)
	}
	if b.Strategy.Orders() != "prefixaware" || third.Strategy.Orders() != "prefixaware" || len(c.Activated) != 1 || len(c.Ended) != 2 ||
		c.Ended[0].Pool != "b" || c.Ended[0].NoModule || c.Ended[1].Pool != "c" || !c.Ended[1].NoModule {
		t.Errorf("%s, %s, %+v; want what the file names, and why", b.Strategy, third.Strategy, c.Ended)
	}
	must(t, ChangeActivations(dir, func(all map[string]Activation) {
		if len(all) != 4 {
			t.Errorf("%v", all)
		}
		clear(all)
	}))
	if c, err = Load(path); err != nil || c.Pools[0].Strategy.Orders() != "roundrobin" || len(c.Pools[0].Canary) != 2 || len(c.Ended) != 0 {
		t.Errorf("%+v %v", c, err)
	}
}

func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	must(t, WriteWhole(path, []byte("one")))
	must(t, WriteWhole(path, []byte("two")))
	if got, err := os.ReadFile(path); string(got) != "two" {
		t.Errorf("%q, %v", got, err)
	}
	if err := WriteWhole(filepath.Join(dir, "none", "x"), nil); err == nil {
		t.Error("a folder that is not there was written")
	}
	must(t, os.Mkdir(filepath.Join(dir, "y"), 0o700))
	if err := WriteWhole(filepath.Join(dir, "y"), nil); err == nil {
		t.Error("a folder was written over")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("%v; want nothing left behind", entries)
	}
}
