package conf

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestLoaded: Holds is true of what was loaded until a file changes, and false of what was refused or changed during
// the load.
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

// TestRefusedFilesAreWatched: the modules of a configuration that was refused are watched beside the files in force,
// whether the file has their path or server.strategies_dir waits for them, until another one comes into force.
func TestRefusedFilesAreWatched(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "warmpath.toml")
	var l Loaded
	load := func(text string, refusal error) *Config {
		t.Helper()
		write(t, path, text+"[[pools.workers]]\nurl = \"http://127.0.0.1:1\"\n")
		c, err := l.Load(path, func(*Config) error { return refusal })
		if (err != nil) != (c == nil || refusal != nil) {
			t.Fatalf("error %v with %v", err, c)
		}
		return c
	}
	inForce := load("[[pools]]\n", nil)
	f := func(when string, want ...string) {
		t.Helper()
		for i := range want {
			want[i] = filepath.Join(dir, want[i])
		}
		if got := l.Files(inForce); !slices.Equal(got, append([]string{path}, want...)) {
			t.Errorf("%s: %q are watched; want the file and %q", when, got, want)
		}
	}
	f("in force")
	load("[strategies.mine]\npath = \"mine.wasm\"\n[[pools]]\nstrategy = \"mine\"\n", errors.New("no such module"))
	f("refused for its module", "mine.wasm")
	load("[server]\nadmin = \"127.0.0.1:1\"\nadmin_token_file = \"warmpath.toml\"\nstrategies_dir = \".\"\n"+
		"[[pools]]\nstrategy = \"later\"\n", nil)
	f("refused for a name that the folder does not have", "later.wasm")
	load("[[pools]\n", nil)
	f("a file that cannot be read")
	inForce = load("[[pools]]\n", nil)
	f("in force again")
}

// TestALargeFileIsNotRead: what is too long to be a module has a sum by its size and time.
func TestALargeFileIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.wasm")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_700_000_000, 0)
	of := func(size int64, at time.Time) sum {
		t.Helper()
		if err := errors.Join(os.Truncate(path, size), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
		s, err := fileSum(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	large := of(mostHashed+1, at)
	if of(mostHashed+1, at) != large || of(mostHashed+2, at) == large || of(mostHashed+1, at.Add(1)) == large {
		t.Error("its sum does not follow its size and time")
	}
	if of(8, at) != of(8, at.Add(1)) {
		t.Error("a small file's sum is not that of its contents")
	}
}
