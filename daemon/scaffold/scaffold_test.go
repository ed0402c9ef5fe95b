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

	"github.com/warmpath/warmpath/sdk"
)

// toolchain skips the test where a program is missing, and fails it where CI says that all are there. Rust is not asked
// of CI.
func toolchain(t *testing.T, remedy string, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("CI") != "" && p != "cargo" {
				t.Fatalf("%s is missing; %s", p, remedy)
			}
			t.Skipf("SKIPPED: %s is missing, so its projects are not proven here; %s", p, remedy)
		}
	}
}

// A new project's test passes, its module is built, and the test fails when the strategy is another.
func TestProjects(t *testing.T) {
	for _, c := range []struct {
		language string
		programs []string
		file     string // of the strategy, in which old is replaced by new
		old, new string
	}{
		{"go", nil, "main.go", "w.Wait+", ""},
		{"c", []string{"clang", "wasm-ld"}, "strategy.c", "w->wait +", ""},
		{"assemblyscript", []string{"node", "npm"}, "assembly/index.ts", "w.wait +", ""},
		{"rust", []string{"cargo"}, "src/lib.rs", "w.wait +", ""},
	} {
		t.Run(c.language, func(t *testing.T) {
			toolchain(t, recipes[c.language].missed, c.programs...)
			dir, err := New(t.TempDir(), "my-own_2", c.language, "v0.0.0-test")
			if err != nil {
				t.Fatal(err)
			}
			prepare(t, c.language, dir)
			var out bytes.Buffer
			if err := Test(t.Context(), dir, &out); err != nil {
				t.Fatalf("%v\n%s", err, out.Bytes())
			}
			wasm, err := Build(t.Context(), dir, &out)
			if err != nil {
				t.Fatalf("%v\n%s", err, out.Bytes())
			}
			b, err := os.ReadFile(wasm)
			if err != nil || !bytes.HasPrefix(b, []byte("\x00asm")) {
				t.Errorf("%s is no module: %v", wasm, err)
			}
			change(t, filepath.Join(dir, c.file), c.old, c.new)
			if err := Test(t.Context(), dir, &out); err == nil {
				t.Errorf("the test passes without the worker's queue:\n%s", out.Bytes())
			}
		})
	}
}

// prepare fetches what a language's project needs once.
func prepare(t *testing.T, language, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	switch language {
	case "assemblyscript":
		c := exec.CommandContext(ctx, "npm", "install", "--silent", "--no-audit", "--no-fund")
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("npm install: %v\n%s", err, out)
			}
			t.Skipf("SKIPPED: npm cannot install AssemblyScript here: %v\n%s", err, out)
		}
	case "rust":
		out, err := exec.CommandContext(ctx, "rustc", "--print", "target-libdir", "--target", "wasm32-unknown-unknown").Output()
		if err == nil {
			_, err = os.Stat(strings.TrimSpace(string(out)))
		}
		if err != nil {
			t.Skip("SKIPPED: Rust has no wasm32-unknown-unknown here: rustup target add wasm32-unknown-unknown")
		}
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

// Every field of sdk/abi stands in each language's layout at its offset and with its meaning.
func TestLayouts(t *testing.T) {
	all, err := records()
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range Languages[1:] {
		_, text, err := layout(language)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			if r.about == "" {
				t.Errorf("%s has no comment", r.name)
			}
			for _, f := range r.fields {
				if f.about == "" {
					t.Errorf("%s.%s has no meaning", r.name, f.name)
				}
				if want := fmt.Sprintf("// %d: %s\n", f.offset, f.about); f.count == 0 && !strings.Contains(string(text), want) {
					t.Errorf("%s: %s.%s is missing", language, r.name, f.name)
				}
			}
		}
	}
}

func TestNamesOfFields(t *testing.T) {
	for in, want := range map[string]string{"GPU": "gpu", "FreeGPU": "free_gpu", "InFlight": "in_flight", "C1": "c1",
		"InvBWL1": "inv_bwl1", "TTFT": "ttft", "KVUsage": "kvusage", "RejectLen": "reject_len"} {
		if got := snake(in); got != want {
			t.Errorf("%s is %s; want %s", in, got, want)
		}
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

// The copy of the SDK has the project's licence, and builds with nothing else.
func TestCopyOfTheSDK(t *testing.T) {
	root, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if own, err := sdk.Source.ReadFile("LICENSE"); err != nil || !bytes.Equal(own, root) {
		t.Errorf("sdk/LICENSE is not the project's: %v", err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := New(t.TempDir(), "mine", "go", "")
	if err != nil {
		t.Fatal(err)
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
