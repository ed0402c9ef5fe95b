package scaffold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/toolchains"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

// decides has the sandbox decide by a module of a project: the worker that holds the prompt, unless too much waits there.
// then is the first alternative that it names, 0 for none.
func decides(t *testing.T, wasm []byte, then int32) {
	t.Helper()
	h, err := host.New(t.Context(), host.Config{Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background())
	// Each language reads its options. A busy machine's picks are no slow module's.
	options := host.Options{PickTime: time.Second, Values: map[string]string{"each": ".02"}}
	if _, err := h.Load(t.Context(), "mine", wasm, host.Options{Values: map[string]string{"eech": "1"}}); err == nil ||
		!strings.Contains(err.Error(), "eech") {
		t.Fatalf("an option that it does not know: %v", err)
	}
	s, err := h.Load(t.Context(), "mine", wasm, options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	f := func(wait float64, want int) {
		t.Helper()
		f := &host.Frame{}
		f.Reset()
		f.Header.PromptBlocks, f.Header.BlockTokens, f.Header.C1 = 64, 32, abi.PrefillSeconds
		for i := range 300 { // more than an instance begins with room for
			f.Rows = append(f.Rows, abi.Row{Worker: uint32(i), Weight: 1, Slow: 1})
			f.WorkerIDs = append(f.WorkerIDs, fmt.Sprint(i))
		}
		f.Rows[0].InFlight, f.Rows[200].GPU, f.Rows[200].Wait, f.Rows[299].GPU = 1, 62, wait, 10
		for range 1000 {
			r := s.Pick(f)
			if r.Row != want || r.Fallback != "" || r.Fuel == 0 || then > 0 && r.Order[1] != then {
				t.Fatalf("%v s wait at the worker that holds it: %d by %q, then %d, %d fuel (%s); want %d, then %d",
					wait, r.Row, r.Fallback, r.Order[1], r.Fuel, s.Stats().LastError, want, then)
			}
		}
	}
	f(0, 200)
	f(100, 299)
}

// A new project's test passes, its module is built and decides, also when it names an alternative, and the test fails
// when the strategy is another.
func TestProjects(t *testing.T) {
	toolchains.Use(t, "../../..")
	for _, c := range []struct {
		language string
		file     string // of the strategy, in which old is replaced by new
		old, new string
		answer   string    // in the strategy, before which then stands
		then     [2]string // what names worker 7 an alternative, and the name that is to be imported for it
	}{
		{"go", "main.go", "w.Wait+", "", "", [2]string{}}, // its ranking names alternatives
		{"c", "strategy.c", "w->wait +", "", "return wp_to", [2]string{"wp_then(7);\n  ", ""}},
		{"assemblyscript", "assembly/index.ts", "w.wait +", "", "return to(",
			[2]string{"then(7);\n  ", "to, texts"}},
		{"rust", "src/lib.rs", "w.wait +", "", "to(best", [2]string{"warmpath::then(request, 7);\n    ", ""}},
		{"zig", "strategy.zig", "w.wait +", "", "return wp.to(", [2]string{"wp.then(request, 7);\n    ", ""}},
	} {
		t.Run(c.language, func(t *testing.T) {
			t.Parallel()
			dir, err := New(t.TempDir(), "my-own_2", c.language, "v0.0.0-test")
			if err != nil {
				t.Fatal(err)
			}
			toolchains.Need(t, c.language, dir)
			var out bytes.Buffer
			if err := Test(t.Context(), dir, &out); err != nil {
				t.Fatalf("%v\n%s", err, out.Bytes())
			}
			built := func() []byte {
				wasm, err := Build(t.Context(), dir, &out)
				if err != nil {
					t.Fatalf("%v\n%s", err, out.Bytes())
				}
				b, err := os.ReadFile(wasm)
				if err != nil || !bytes.HasPrefix(b, []byte("\x00asm")) {
					t.Errorf("%s is no module: %v", wasm, err)
				}
				return b
			}
			decides(t, built(), 0)
			strategy := filepath.Join(dir, c.file)
			if c.answer != "" {
				change(t, strategy, c.answer, c.then[0]+c.answer)
				if c.then[1] != "" {
					change(t, strategy, c.then[1], "then, "+c.then[1])
				}
				if err := Test(t.Context(), dir, &out); err != nil {
					t.Fatalf("with an alternative: %v\n%s", err, out.Bytes())
				}
				decides(t, built(), 7)
			}
			change(t, strategy, c.old, c.new)
			if err := Test(t.Context(), dir, &out); err == nil {
				t.Errorf("the test passes without the worker's queue:\n%s", out.Bytes())
			}
		})
	}
}

func change(t *testing.T, file, old, with string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(b), old, with, 1)
	if changed == string(b) {
		t.Fatalf("%s has no %q", file, old)
	}
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"", "Mine", "../x", "a/b", "mine wasm", "1st", strings.Repeat("a", 32), "ümlaut"} {
		if _, err := New(dir, name, "go", ""); err == nil {
			t.Errorf("%q is taken as a name", name)
		}
	}
	if _, err := New(dir, "mine", "cobol", ""); err == nil || !strings.Contains(err.Error(), "assemblyscript") {
		t.Errorf("a language that there is not: %v", err)
	}
	if _, err := New(filepath.Join(dir, "nowhere"), "mine", "c", ""); err == nil {
		t.Error("a folder that there is not is taken")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v was left behind", left)
	}
	if _, err := New(dir, "mine", "c", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := New(dir, "mine", "c", ""); !errors.Is(err, ErrExists) {
		t.Errorf("the same name again: %v", err)
	}
	if _, err := Build(t.Context(), dir, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "plugin new") {
		t.Errorf("building what is no project: %v", err)
	}
}

// The copy of the SDK has the project's licence and the examples, and builds with nothing else.
func TestCopyOfTheSDK(t *testing.T) {
	root, err := os.ReadFile("../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if own, err := sdk.Source.ReadFile("LICENSE"); err != nil || !bytes.Equal(own, root) {
		t.Errorf("sdk/LICENSE is not the project's: %v", err)
	}
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := New(t.TempDir(), "mine", "go", "")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := goIn(t, filepath.Join(dir, "warmpath"), "test", "./sdk"); err != nil || !strings.HasPrefix(out, "ok") {
		t.Errorf("the examples of the copy: %v\n%s", err, out)
	}
	for _, file := range []string{"go.mod", "warmpath/go.mod"} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if _, after, _ := strings.Cut(string(b), "\ngo "); !strings.Contains(string(mod), "\ngo "+strings.Fields(after)[0]+"\n") {
			t.Errorf("%s asks for another Go than this project does", file)
		}
	}
}

// TestVersionOfAProject: a project names the release that made it, and its ABI. A Go project asks for that release.
func TestVersionOfAProject(t *testing.T) {
	read := func(dir, file string) string {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	f := func(language, version, module string) {
		t.Helper()
		dir, err := New(t.TempDir(), "mine", language, version)
		if err != nil {
			t.Fatal(err)
		}
		if want := "warmpath " + version + " made this project, for version 1.2 of its ABI."; !strings.Contains(read(dir, "README.md"), want) {
			t.Errorf("%s: README.md lacks %q:\n%s", language, want, read(dir, "README.md"))
		}
		if module != "" && !strings.Contains(read(dir, "go.mod"), "require github.com/warmpath/warmpath "+module+"\n") {
			t.Errorf("by %s: go.mod does not require %s:\n%s", version, module, read(dir, "go.mod"))
		}
	}
	for _, language := range Languages {
		f(language, "v0.1.0", "")
	}
	f("go", "v0.1.0", "v0.1.0")
	f("go", "v0.1.0-3-g1a2b3c4", "v0.0.0")
	f("go", "dev", "v0.0.0")
}

// goIn runs the go command in a folder.
func goIn(t *testing.T, dir string, args ...string) (out string, err error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOPROXY=off")
	b, err := c.CombinedOutput()
	return string(b), err
}

// A program that its user interrupts is not said to have taken too long.
func TestInterrupted(t *testing.T) {
	toolchain(t, "install sleep", "sleep")
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, stop)
	r := recipe{missed: "install sleep"}
	err := r.one(ctx, t.TempDir(), nil, []string{"sleep", "60"}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "sleep 60 was interrupted") {
		t.Errorf("got %v; want that it was interrupted", err)
	}
}

// What to install is said of what is not there, and of nothing else: an author whose own test fails has all tools.
func TestRemedies(t *testing.T) {
	toolchain(t, "install sleep", "sleep")
	dir := t.TempDir()
	r := recipe{missed: "install it"}
	if err := r.one(t.Context(), dir, nil, []string{"sleep", "--no-such-flag"}, &bytes.Buffer{}); err == nil ||
		strings.Contains(err.Error(), "install") {
		t.Errorf("a program that fails: %v; want no word of installing", err)
	}
	if err := r.one(t.Context(), dir, nil, []string{"no-such-program"}, &bytes.Buffer{}); err == nil ||
		!strings.Contains(err.Error(), "no-such-program is not on this machine; install it") {
		t.Errorf("a program that is not there: %v", err)
	}
	r.needs = "node_modules/assemblyscript"
	if err := r.run(t.Context(), dir, nil, nil, &bytes.Buffer{}); err == nil ||
		!strings.Contains(err.Error(), "node_modules/assemblyscript is not there; install it") {
		t.Errorf("a package that is not there: %v", err)
	}
}
