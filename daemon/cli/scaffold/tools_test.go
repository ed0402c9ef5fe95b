package scaffold

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/testdata/pyvenv"
)

// toolchain skips the test where a program is missing, and fails it where CI claims to have all.
func toolchain(t *testing.T, remedy string, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is missing; %s", p, remedy)
			}
			t.Skipf("SKIPPED: %s is missing, so its projects are not proven here; %s", p, remedy)
		}
	}
}

// tools puts into the PATH what is not there: Zig, from pip, and Debian's Rust, where another has no wasm.
func tools(t *testing.T) {
	t.Helper()
	path := os.Getenv("PATH")
	if !rustHasWasm(t, "rustc") && rustHasWasm(t, "/usr/bin/rustc") {
		path = "/usr/bin" + string(os.PathListSeparator) + path
	}
	if _, err := exec.LookPath("zig"); err != nil {
		t.Run("zig", func(t *testing.T) { // a test of its own, so that nothing else is skipped without it
			python := pyvenv.Python(t, "../../../.cache/zig", "testdata/zig.txt", "the project in Zig")
			folder := filepath.Dir(python)
			script := fmt.Sprintf("#!/bin/sh\nexec %q -m ziglang \"$@\"\n", python)
			if err := os.WriteFile(filepath.Join(folder, "zig"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			path = folder + string(os.PathListSeparator) + path
		})
	}
	t.Setenv("PATH", path)
}

// rustHasWasm reports whether that compiler is there and has the target of a module.
func rustHasWasm(t *testing.T, rustc string) bool {
	t.Helper()
	c := exec.CommandContext(t.Context(), rustc, "--print", "target-libdir", "--target", "wasm32-unknown-unknown")
	out, err := c.Output()
	if err != nil {
		return false
	}
	_, err = os.Stat(strings.TrimSpace(string(out)))
	return err == nil
}

// prepare fetches what a language's project needs once.
func prepare(t *testing.T, language, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	missing := ""
	switch language {
	case "assemblyscript":
		c := exec.CommandContext(ctx, "npm", "install", "--silent", "--no-audit", "--no-fund")
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			missing = fmt.Sprintf("npm cannot install AssemblyScript here: %v\n%s", err, out)
		}
	case "rust":
		if !rustHasWasm(t, "rustc") {
			missing = "Rust has no wasm32-unknown-unknown here: " + recipes["rust"].missed
		}
	}
	switch {
	case missing == "":
	case os.Getenv("CI") != "":
		t.Fatal(missing)
	default:
		t.Skip("SKIPPED: " + missing)
	}
}

// A module in C that calls every function of the host is linked: each has the parameters and the result that the contract
// says.
func TestEveryImport(t *testing.T) {
	toolchain(t, recipes["c"].missed, "clang", "wasm-ld")
	dir, err := New(t.TempDir(), "mine", "c", "")
	if err != nil {
		t.Fatal(err)
	}
	var calls strings.Builder
	for _, f := range abi.Imports {
		calls.WriteString("  wp_" + f.Name + "(" + strings.TrimSuffix(strings.Repeat("0, ", len(f.Params)), ", ") + ");\n")
	}
	change(t, filepath.Join(dir, "strategy.c"), "  uint32_t best = 0;\n", "  uint32_t best = 0;\n"+calls.String())
	wasm, err := Build(t.Context(), dir, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(wasm)
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(t.Context(), host.Config{Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background())
	s, err := h.Load(t.Context(), "mine", b, host.Options{PickTime: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.Close(context.Background())
}
