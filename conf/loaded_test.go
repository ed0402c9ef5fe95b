package conf

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestLoaded: what was loaded is held until a file changes, and nothing is that was refused, or that changed while it was loaded.
func TestLoaded(t *testing.T) {
	dir := t.TempDir()
	path, module := filepath.Join(dir, "warmpath.toml"), filepath.Join(dir, "mine.wasm")
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const text = "[[pools]]\nstrategy = \"mine\"\n[[pools.workers]]\nurl = \"http://127.0.0.1:1\"\n[strategies.mine]\npath = \"mine.wasm\"\n"
	put(path, text)
	put(module, "one")
	var l Loaded
	var c *Config
	load := func(apply func(*Config) error) error {
		now, err := l.Load(path, apply)
		if err == nil {
			c = now
		}
		return err
	}
	holds := func(what string, want bool) {
		t.Helper()
		if got := l.Holds(c); got != want {
			t.Errorf("%s: held is %v; want %v", what, got, want)
		}
	}
	well := func(*Config) error { return nil }
	if err := load(well); err != nil {
		t.Fatal(err)
	}
	holds("loaded", true)
	put(module, "two")
	holds("a new module", false)
	put(module, "one")
	holds("the module of before", true)
	put(path, text+"\n")
	holds("a new file", false)
	if err := load(func(*Config) error { return errors.New("no") }); err == nil {
		t.Error("no error")
	}
	holds("refused", false)
	put(path, text)
	holds("put back after it was refused", false)
	if err := load(func(*Config) error { put(module, "three"); return nil }); err != nil {
		t.Fatal(err)
	}
	holds("a module that changed as it was loaded", false)
	if err := load(func(*Config) error { put(path, text+"\n"); return nil }); err != nil {
		t.Fatal(err)
	}
	holds("a file that changed as it was loaded", false)
	if err := load(well); err != nil {
		t.Fatal(err)
	}
	holds("loaded again", true)
	if err := os.Remove(module); err != nil {
		t.Fatal(err)
	}
	holds("a module that is gone", false)
}
