package delivery

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// scene is a Store over a folder, with what its functions are to do.
type scene struct {
	*Store
	now                     Setting
	dir                     string
	check, reload, remember error
	named                   []string // what Remember got
}

func newScene(t *testing.T) *scene {
	s := &scene{dir: t.TempDir()}
	s.now = Setting{Dir: s.dir, Pools: []string{"main"}, Strategies: []Strategy{
		{Name: "prefixaware", Source: BuiltIn, Serves: []Service{{Pool: "main", As: Live}}},
		{Name: "of-the-file", Source: File, Path: "/elsewhere.wasm"}}}
	s.Store = &Store{MaxFiles: 3, IsName: func(name string) bool { return name != "" && !strings.ContainsAny(name, "/ ") },
		Setting:  func() Setting { n := s.now; n.Strategies = slices.Clone(n.Strategies); return n },
		Read:     func(name, path string) ([]byte, error) { return os.ReadFile(s.Path(name)) },
		Path:     func(name string) string { return filepath.Join(s.dir, name+".wasm") },
		Check:    func(string, []byte) error { return s.check },
		CheckFor: func(string, string) error { return s.check },
		Write:    func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) },
		Reload:   func() error { return s.reload },
		Remember: func(_, name, of string) (func() error, error) {
			s.named = append(s.named, name+" over "+of)
			return func() error { s.named = append(s.named, "undone"); return nil }, s.remember
		}}
	return s
}

func (s *scene) stored(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(s.Path(name)); string(got) != want || err != nil && want != "" {
		t.Errorf("%s holds %q (%v); want %q", name, got, err, want)
	}
}

func TestPut(t *testing.T) {
	s := newScene(t)
	refused := func(name, wasm, was string, why Why, says string) {
		t.Helper()
		_, err := s.Put(name, []byte(wasm), was)
		if r, ok := errors.AsType[*Refusal](err); !ok || r.Why != why || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want a refusal of kind %d with %q", name, err, why, says)
		}
	}
	d, err := s.Put("mine", []byte("one"), "")
	if err != nil || d.Before != "" || d.Note == "" {
		t.Fatalf("%+v, %v; want no module before, and a note that it serves nobody", d, err)
	}
	s.now.Strategies = append(s.now.Strategies, Strategy{Name: "mine", Source: Folder, Serves: []Service{{Pool: "main", As: Canary}}})
	d, err = s.Put("mine", []byte("two"), strings.ToUpper(Sum([]byte("one"))))
	if err != nil || d.Before != Sum([]byte("one")) || d.SHA256 != Sum([]byte("two")) || d.Note != "" {
		t.Fatalf("%+v, %v; want both sums and no note", d, err)
	}
	refused("mine", "three", Sum([]byte("one")), Conflict, Sum([]byte("two")))
	refused("new", "three", Sum([]byte("one")), Conflict, "nothing stands there")
	refused("prefixaware", "x", "", Unnamed, "built-in")
	refused("of-the-file", "x", "", Conflict, "/elsewhere.wasm")
	refused("a/b", "x", "", Unnamed, "no name")
	refused(".hidden", "x", "", Unnamed, "no name")
	refused("", "x", "", Unnamed, "no name")
	refused("mine", "", "", BadModule, "no body")
	s.check = errors.New("it has no wp_pick")
	refused("mine", "three", "", BadModule, "wp_pick")
	s.check, s.reload = nil, errors.New("line 3")
	refused("mine", "three", "", Conflict, "line 3")
	refused("new", "three", "", Conflict, "line 3")
	s.stored(t, "mine", "two")
	s.stored(t, "new", "")
	s.reload, s.MaxFiles = nil, 1
	refused("new", "x", "", Conflict, "has 1 modules already")
	s.Write = func(string, []byte) error { return errors.New("read-only file system") }
	refused("mine", "three", "", Broken, "writable")
	s.now.Dir = ""
	refused("mine", "three", "", Conflict, "set server.strategies_dir")
}

// TestASecondChangeIsRefused: while one delivery is under way, another is answered at once, and changes nothing.
func TestASecondChangeIsRefused(t *testing.T) {
	s := newScene(t)
	begun, goOn, ended := make(chan bool), make(chan bool), make(chan error, 1)
	s.Check = func(string, []byte) error { close(begun); <-goOn; return nil }
	go func() { _, err := s.Put("mine", []byte("first"), ""); ended <- err }()
	<-begun
	for _, change := range []func() error{
		func() error { _, err := s.Put("mine", []byte("second"), ""); return err },
		func() error { _, err := s.Activate("main", "mine"); return err },
		func() error { _, err := s.Deactivate("main"); return err },
		func() error { return s.Remove("mine") },
	} {
		if r, ok := errors.AsType[*Refusal](change()); !ok || r.Why != Conflict || !strings.Contains(r.Text, "under way") {
			t.Errorf("%v; want that another change is under way", r)
		}
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.stored(t, "mine", "first")
}

func TestRemove(t *testing.T) {
	s := newScene(t)
	s.now.Strategies = append(s.now.Strategies, Strategy{Name: "mine", Source: Folder}, Strategy{Name: "busy", Source: Folder,
		Serves: []Service{{Pool: "main", As: Shadow}}})
	f := func(name string, want Why) {
		t.Helper()
		if r, _ := errors.AsType[*Refusal](s.Remove(name)); r == nil || r.Why != want {
			t.Errorf("%s: %v; want %d", name, r, want)
		}
	}
	f("prefixaware", Unknown)
	f("of-the-file", Unknown)
	f("busy", Conflict)
	f("mine", Broken) // its file is not there
	if err := os.WriteFile(s.Path("mine"), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.reload = errors.New("a pool names it by now")
	f("mine", Conflict)
	s.stored(t, "mine", "one")
	s.reload = nil
	if err := s.Remove("mine"); err != nil {
		t.Error(err)
	}
	s.stored(t, "mine", "")
}

func TestActivate(t *testing.T) {
	s := newScene(t)
	s.now.Strategies = append(s.now.Strategies, Strategy{Name: "mine", Source: Folder})
	serves := func(name, insteadOf string) {
		for i := range s.now.Strategies {
			s.now.Strategies[i].Serves = nil
			if s.now.Strategies[i].Name == name {
				at := time.Now()
				s.now.Strategies[i].Serves = []Service{{Pool: "main", As: Live, InsteadOf: insteadOf, Activated: &at}}
			}
		}
	}
	refused := func(pool, name string, why Why) {
		t.Helper()
		s.named = nil
		if _, err := s.Activate(pool, name); err == nil || err.(*Refusal).Why != why {
			t.Errorf("%s for %s: %v; want %d", name, pool, err, why)
		}
	}
	refused("none", "mine", Unknown)
	refused("main", "none", Unknown)
	s.check = errors.New("traps")
	refused("main", "mine", BadModule)
	s.check, s.remember = nil, errors.New("no space")
	refused("main", "mine", Broken)
	s.remember = nil
	refused("main", "mine", Conflict) // after the reload another serves, as the file has changed
	s.reload = errors.New("line 3")
	refused("main", "mine", Conflict)
	if !slices.Equal(s.named, []string{"mine over prefixaware", "undone"}) {
		t.Errorf("written down: %q", s.named)
	}
	s.reload, s.named = nil, nil
	s.Reload = func() error { serves("mine", "prefixaware"); return nil }
	if is, err := s.Activate("main", "mine"); err != nil || is.Serves[0].InsteadOf != "prefixaware" {
		t.Errorf("%+v, %v", is, err)
	}
	s.Reload = func() error { serves("prefixaware", ""); return nil }
	if is, err := s.Activate("main", "prefixaware"); err != nil || is.Name != "prefixaware" { // the file's own is no activation
		t.Errorf("%+v, %v", is, err)
	}
	serves("mine", "prefixaware")
	if is, err := s.Deactivate("main"); err != nil || is.Name != "prefixaware" {
		t.Errorf("%+v, %v", is, err)
	}
	if want := []string{"mine over prefixaware", " over prefixaware", " over prefixaware"}; !slices.Equal(s.named, want) {
		t.Errorf("written down: %q; want %q", s.named, want)
	}
}
