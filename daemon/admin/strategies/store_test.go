package strategies

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/host"
)

// scene is a Store over a folder, in a process that only reads its configuration.
type scene struct {
	*Store
	t         *testing.T
	file, dir string
	c         *conf.Config
	reload    func() error // what comes between a change and the next reading; nil = nothing
}

func (s *scene) Configuration() *conf.Config { return s.c }

func (*scene) Share(string, []byte) string { return "" }

func (*scene) Served() *epoch.Epoch { return &epoch.Epoch{} }

func (s *scene) Reload() error {
	if s.reload != nil {
		if err := s.reload(); err != nil {
			return err
		}
	}
	c, err := conf.Load(s.file)
	if err == nil {
		logActivations(c, slog.New(slog.DiscardHandler))
		s.c = c
	}
	return err
}

// newScene has one pool, main, with a strategy of the file's own.
func newScene(t *testing.T) *scene {
	t.Helper()
	h, err := host.New(context.Background(), host.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(context.Background()) })
	s := &scene{t: t, file: filepath.Join(t.TempDir(), "warmpath.toml"), dir: t.TempDir()}
	s.Store = NewStore(h, s)
	s.names("of-the-file", "")
	return s
}

// names has the file name a strategy for the pool, with more of a table, and loads the file.
func (s *scene) names(strategy, more string) {
	s.t.Helper()
	elsewhere := s.file + ".wasm"
	s.write(elsewhere, module(s.t, "elsewhere"))
	s.write(s.file, fmt.Sprintf("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nstrategies_dir = %q\n"+
		"[strategies.of-the-file]\npath = %q\n[[pools]]\nname = \"main\"\nmodels = [\"*\"]\nstrategy = %q\n"+
		"[[pools.workers]]\nurl = \"http://127.0.0.1:1\"\n%s", s.dir, elsewhere, strategy, more))
	c, err := conf.Load(s.file)
	if err != nil {
		s.t.Fatal(err)
	}
	s.c = c
}

func (s *scene) write(path, data string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) stored(name, want string) {
	s.t.Helper()
	if got, err := os.ReadFile(filepath.Join(s.dir, name+".wasm")); string(got) != want || err != nil && want != "" {
		s.t.Errorf("%s holds %q (%v); want %q", name, got, err, want)
	}
}

// module is a strategy that takes the first worker; data tells it from others.
func module(t *testing.T, data string) string {
	t.Helper()
	wasm, err := wasmtest.Assemble(fmt.Sprintf(`(module (memory (export "memory") 1) (data (i32.const 0) %q)
		(func (export "warmpath_abi_1_1")) (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_pick") (result i64) i64.const 0))`, data))
	if err != nil {
		t.Fatal(err)
	}
	return string(wasm)
}

// isRefused checks why something is refused, and what the refusal says.
func isRefused(t *testing.T, what string, err error, why Why, says string) {
	t.Helper()
	if r, ok := errors.AsType[*Refusal](err); !ok || r.Why != why || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v; want a refusal of kind %d with %q", what, err, why, says)
	}
}

func line3() error { return errors.New("line 3") }

func TestPut(t *testing.T) {
	s := newScene(t)
	refused := func(name, wasm, was string, why Why, says string) {
		t.Helper()
		_, err := s.Put(name, []byte(wasm), was)
		isRefused(t, name, err, why, says)
	}
	one, two, three := module(t, "one"), module(t, "two"), module(t, "three")
	d, err := s.Put("mine", []byte(one), "")
	if err != nil || d.Before != "" || d.Note == "" || d.Source != "folder" {
		t.Fatalf("%+v, %v; want no module before, and a note that it serves nobody", d, err)
	}
	s.names("of-the-file", "[[pools.canary]]\nstrategy = \"mine\"\npercent = 5\n")
	d, err = s.Put("mine", []byte(two), strings.ToUpper(Sum([]byte(one))))
	if err != nil || d.Before != Sum([]byte(one)) || d.SHA256 != Sum([]byte(two)) || d.Note != "" {
		t.Fatalf("%+v, %v; want both sums and no note", d, err)
	}
	refused("mine", three, Sum([]byte(one)), Conflict, Sum([]byte(two)))
	refused("new", three, Sum([]byte(one)), Conflict, "nothing stands there")
	refused("prefixaware", "x", "", Unnamed, "built-in")
	refused("of-the-file", "x", "", Conflict, s.file+".wasm")
	refused("a/b", "x", "", Unnamed, "no name")
	refused(".hidden", "x", "", Unnamed, "no name")
	refused("", "x", "", Unnamed, "no name")
	refused("mine", "", "", BadModule, "no body")
	refused("mine", strings.Replace(three, "wp_pick", "wp_pock", 1), "", BadModule, `pool "main"`)
	refused("new", strings.Replace(three, "wp_pick", "wp_pock", 1), "", BadModule, "wp_pick")
	s.reload = line3
	refused("mine", three, "", Conflict, "line 3")
	refused("new", three, "", Conflict, "line 3")
	s.stored("mine", two)
	s.stored("new", "")
	s.reload = nil
	for i := range conf.MaxStored - 1 {
		s.write(filepath.Join(s.dir, fmt.Sprintf("more-%d.wasm", i)), one)
	}
	s.names("of-the-file", "")
	refused("new", three, "", Conflict, "has 64 modules already")
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	refused("mine", three, "", Broken, "writable")
	s.c.Server.StrategiesDir = ""
	refused("mine", three, "", Conflict, "set server.strategies_dir")
}

// TestASecondChangeIsRefused: while one delivery is under way, another is answered at once, and changes nothing.
func TestASecondChangeIsRefused(t *testing.T) {
	s := newScene(t)
	first, second := module(t, "first"), module(t, "second")
	begun, goOn, ended := make(chan bool), make(chan bool), make(chan error, 1)
	s.reload = func() error { close(begun); <-goOn; return nil }
	go func() { _, err := s.Put("mine", []byte(first), ""); ended <- err }()
	<-begun
	for _, change := range []func() error{
		func() error { _, err := s.Put("mine", []byte(second), ""); return err },
		func() error { _, err := s.Activate("main", "mine"); return err },
		func() error { _, err := s.Deactivate("main"); return err },
		func() error { return s.Remove("mine") },
	} {
		isRefused(t, "a second change", change(), Conflict, "under way")
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.stored("mine", first)
}

func TestRemove(t *testing.T) {
	s := newScene(t)
	one, path := module(t, "one"), filepath.Join(s.dir, "mine.wasm")
	s.write(path, one)
	s.write(filepath.Join(s.dir, "busy.wasm"), one)
	s.names("of-the-file", "[[pools.shadow]]\nstrategy = \"busy\"\n")
	refused := func(name string, why Why, says string) {
		t.Helper()
		isRefused(t, name, s.Remove(name), why, says)
	}
	refused("prefixaware", Unknown, "no module of the name")
	refused("of-the-file", Unknown, "no module of the name")
	refused("none", Unknown, "no module of the name")
	refused("busy", Conflict, "busy is shadow of pool main")
	s.reload = line3
	refused("mine", Conflict, "line 3")
	s.stored("mine", one)
	s.reload = nil
	if err := s.Remove("mine"); err != nil {
		t.Error(err)
	}
	s.stored("mine", "")
	s.write(path, one)
	s.names("of-the-file", "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	refused("mine", Broken, "writable")
}

func TestActivate(t *testing.T) {
	s := newScene(t)
	for _, name := range []string{"mine", "other"} {
		s.write(filepath.Join(s.dir, name+".wasm"), module(t, name))
	}
	s.write(filepath.Join(s.dir, "bad.wasm"), "x")
	s.names("of-the-file", "")
	refused := func(pool, name string, why Why, says string) {
		t.Helper()
		_, err := s.Activate(pool, name)
		isRefused(t, name+" for "+pool, err, why, says)
	}
	activated := func(want string) {
		t.Helper()
		c, err := conf.Load(s.file)
		if got := c.Activated["main"].Strategy; err != nil || got != want {
			t.Errorf("%q is written down (%v); want %q", got, err, want)
		}
	}
	refused("none", "mine", Unknown, "no pool")
	refused("main", "none", Unknown, "no strategy")
	refused("main", "bad", BadModule, "bad")
	activations := filepath.Join(s.dir, "activated.toml")
	if err := os.Mkdir(activations, 0o700); err != nil {
		t.Fatal(err)
	}
	refused("main", "mine", Broken, "written down")
	if err := os.Remove(activations); err != nil {
		t.Fatal(err)
	}
	s.reload = func() error { s.names("other", ""); return nil }
	refused("main", "mine", Conflict, "now it names other for pool main")
	s.names("of-the-file", "")
	s.reload = line3
	refused("main", "mine", Conflict, "line 3")
	activated("")
	s.reload = nil
	is, err := s.Activate("main", "mine")
	if err != nil || is.Name != "mine" || is.Serves[0].InsteadOf != "of-the-file" || is.Serves[0].Activated == nil {
		t.Errorf("%+v, %v", is, err)
	}
	activated("mine")
	s.reload = line3
	refused("main", "other", Conflict, "line 3")
	activated("mine") // again
	s.reload = nil
	if is, err := s.Activate("main", "of-the-file"); err != nil || is.Name != "of-the-file" {
		t.Errorf("%+v, %v", is, err)
	}
	activated("") // the file's own is no activation
	if _, err := s.Activate("main", "mine"); err != nil {
		t.Fatal(err)
	}
	if is, err := s.Deactivate("main"); err != nil || is.Name != "of-the-file" || is.Serves[0].Activated != nil {
		t.Errorf("%+v, %v", is, err)
	}
	activated("")
}
