package scaffold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/toolchains"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// decides has the sandbox decide by a module of a project: the worker that holds the prompt, unless too much waits there,
// and the next best as the first alternative.
func decides(t *testing.T, wasm []byte) {
	t.Helper()
	h, err := host.New(t.Context(), host.Config{Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background())
	// Each language reads its options.
	for _, wrong := range []map[string]string{{"eech": "1"}, {"each": "much"}, {"each": ".02", "more": ""}} {
		if _, err := h.Load(t.Context(), "mine", wasm, host.Options{Values: wrong}); err == nil ||
			!strings.Contains(err.Error(), "option") {
			t.Fatalf("the options %v: %v", wrong, err)
		}
	}
	s := loaded(t, wasm, map[string]string{"each": ".02"})
	f := func(wait float64, want int, next int32) {
		t.Helper()
		f := &host.Frame{}
		f.Reset()
		f.Header.PromptTokens, f.Header.PromptBlocks, f.Header.BlockTokens, f.Header.C1 = 2048, 64, 32, abi.PrefillSeconds
		for i := range 300 { // more than an instance begins with room for
			f.Rows = append(f.Rows, abi.Row{Worker: uint32(i), Weight: 1, Slow: 1})
			f.WorkerIDs = append(f.WorkerIDs, fmt.Sprint(i))
		}
		f.Rows[0].InFlight, f.Rows[200].GPU, f.Rows[200].Wait, f.Rows[299].GPU = 1, 62, wait, 10
		for range 1000 {
			r := s.Pick(f)
			if r.Row != want || r.Fallback != "" || r.Fuel == 0 || r.Named != 4 || r.Order[1] != next {
				t.Fatalf("%v s wait at the worker that holds it: %d by %q, then %d, %d fuel (%s); want %d, then %d",
					wait, r.Row, r.Fallback, r.Order[1], r.Fuel, s.Stats().LastError, want, next)
			}
		}
	}
	f(0, 200, 299)
	f(100, 299, 1)
}

// built returns the module of a project whose test passes and says so.
func built(t *testing.T, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Test(t.Context(), dir, &out); err != nil || out.Len() == 0 {
		t.Fatalf("%v, and the test says %q", err, out.Bytes())
	}
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

// A new project's test passes, its module is built and decides, and the test fails when the strategy is another.
func TestProjects(t *testing.T) {
	toolchains.Use(t, "../../..")
	learning := strings.NewReplacer(".1", ".7")
	for language, queue := range map[string][2]string{"go": {"r.TTFT(", "r.Prefill("}, "c": {"wp_ttft(", "wp_prefill("},
		"assemblyscript": {"r.ttft(", "r.prefill("}, "rust": {"r.ttft(", "r.prefill("}, "zig": {"r.ttft(", "r.prefill("}} {
		for _, skeleton := range Skeletons {
			t.Run(language+" "+skeleton, func(t *testing.T) {
				t.Parallel()
				dir, err := New(t.TempDir(), "my-own_2", language, skeleton, "v0.0.0-test")
				if err != nil {
					t.Fatal(err)
				}
				toolchains.Need(t, language, dir)
				strategy := filepath.Join(dir, sources[language])
				if skeleton == "cost" {
					decides(t, built(t, dir))
					change(t, strategy, queue[0], queue[1])
				} else {
					learns(t, built(t, dir))
					b, err := os.ReadFile(strategy)
					if err != nil {
						t.Fatal(err)
					}
					line := regexp.MustCompile(`(?m)^.*mean *\+ *0?\.1.*$`).FindString(string(b))
					change(t, strategy, line, learning.Replace(line))
				}
				var out bytes.Buffer
				if err := Test(t.Context(), dir, &out); err == nil {
					t.Errorf("the test passes with another strategy:\n%s", out.Bytes())
				}
			})
		}
	}
}

// learns has a module of a project learn from answers which worker is fast.
func learns(t *testing.T, wasm []byte) {
	t.Helper()
	s := loaded(t, wasm, map[string]string{"explore": ".1"})
	made := sdktest.NewFrame(3)
	f := &host.Frame{Header: made.Header, Rows: made.Rows}
	s.Pick(f)
	for i, ttft := range []float32{.9, .2, .5} {
		s.Notices().FirstToken(&abi.Outcome{Key: f.Rows[i].Key, TTFT: ttft})
	}
	s.Notices().FirstToken(&abi.Outcome{Key: f.Rows[1].Key, TTFT: 2.2})
	s.Notices().FirstToken(&abi.Outcome{Key: f.Rows[1].Key, TTFT: -1}) // there was none
	s.Settle(t.Context())
	said, to := map[string]int{}, [3]int{}
	for i := range 1000 {
		f.Header.Random = uint64(i + 1)
		r := s.Pick(f)
		said[s.ReasonName(r.Reason)]++
		to[r.Row]++
	}
	if got := fmt.Sprintf("%.3f %.3f %.3f", f.Rows[0].Own, f.Rows[1].Own, f.Rows[2].Own); got != "0.900 0.400 0.500" {
		t.Errorf("it believes %s; want .9, .4 and .5 s", got)
	}
	if said["learnt"] < 850 || said["explored"] < 50 || said["learnt"]+said["explored"] != 1000 || to[1] < 850 {
		t.Errorf("%v, to %v; want a tenth explored, and nearly all at worker 1 (%s)", said, to, s.Stats().LastError)
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
		if _, err := New(dir, name, "go", "cost", ""); err == nil {
			t.Errorf("%q is taken as a name", name)
		}
	}
	if _, err := New(dir, "mine", "cobol", "cost", ""); err == nil || !strings.Contains(err.Error(), "assemblyscript") {
		t.Errorf("a language that there is not: %v", err)
	}
	if _, err := New(dir, "mine", "c", "genius", ""); err == nil || !strings.Contains(err.Error(), "bandit") {
		t.Errorf("a skeleton that there is not: %v", err)
	}
	if _, err := New(filepath.Join(dir, "nowhere"), "mine", "c", "cost", ""); err == nil {
		t.Error("a folder that there is not is taken")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v was left behind", left)
	}
	if _, err := New(dir, "mine", "c", "cost", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := New(dir, "mine", "c", "cost", ""); !errors.Is(err, ErrExists) {
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
	dir, err := New(t.TempDir(), "mine", "go", "cost", "")
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
		dir, err := New(t.TempDir(), "mine", language, "cost", version)
		if err != nil {
			t.Fatal(err)
		}
		if want := "warmpath " + version + " made this project, for version 1.3 of its ABI."; !strings.Contains(read(dir, "README.md"), want) {
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
