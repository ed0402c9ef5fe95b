// Package toolchains finds or fetches what builds a strategy in each language: Zig comes by pip, AssemblyScript by npm
// into a project's folder, the others from the system.
package toolchains

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/pyvenv"
)

// programs are what each language needs.
var programs = map[string][]string{
	"go": {"go"}, "c": {"clang", "wasm-ld"}, "assemblyscript": {"node", "npm"}, "rust": {"cargo"}, "zig": {"zig"},
}

var setting sync.Mutex // two tests of a package may ask at once

// Use puts what the languages need into the PATH, for the rest of the process. root is the project's folder, as the
// test sees it.
func Use(t *testing.T, root string) {
	t.Helper()
	setting.Lock()
	defer setting.Unlock()
	path := os.Getenv("PATH")
	if !rustHasWasm(t.Context(), "rustc") && rustHasWasm(t.Context(), "/usr/bin/rustc") {
		path = "/usr/bin" + string(os.PathListSeparator) + path // Debian's, in place of one without the target
	}
	if _, err := exec.LookPath("zig"); err != nil {
		t.Run("zig by pip", func(t *testing.T) { // a test of its own, so that nothing else is skipped without it
			python := pyvenv.Python(t, filepath.Join(root, ".cache/zig"), filepath.Join(root, "daemon/lab/toolchains/zig.txt"),
				"strategies in Zig")
			folder := filepath.Dir(python)
			script := fmt.Sprintf("#!/bin/sh\nexec %q -m ziglang \"$@\"\n", python)
			if err := os.WriteFile(filepath.Join(folder, "zig"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			path = folder + string(os.PathListSeparator) + path
		})
	}
	if err := os.Setenv("PATH", path); err != nil {
		t.Fatal(err)
	}
}

// Need fetches what a project in dir needs, and skips the test where the language cannot be had; with CI set it fails
// it.
func Need(t *testing.T, language, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	err := prepare(ctx, language, dir)
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skipf("SKIPPED: no strategy in %s is proven here: %v", language, err)
	}
}

func prepare(ctx context.Context, language, dir string) error {
	for _, p := range programs[language] {
		if _, err := exec.LookPath(p); err != nil {
			return err
		}
	}
	switch language {
	case "assemblyscript":
		c := exec.CommandContext(ctx, "npm", "install", "--silent", "--no-audit", "--no-fund")
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("npm cannot install AssemblyScript: %w: %.300s", err, out)
		}
	case "rust":
		if !rustHasWasm(ctx, "rustc") {
			return errors.New("the target wasm32-unknown-unknown of Rust is missing: add it by rustup, or install Debian's " +
				"libstd-rust-dev-wasm32")
		}
	}
	return nil
}

// rustHasWasm reports whether that compiler is there and has the target of a module.
func rustHasWasm(ctx context.Context, rustc string) bool {
	c := exec.CommandContext(ctx, rustc, "--print", "target-libdir", "--target", "wasm32-unknown-unknown")
	out, err := c.Output()
	if err != nil {
		return false
	}
	_, err = os.Stat(strings.TrimSpace(string(out)))
	return err == nil
}
