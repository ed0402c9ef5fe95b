// Package pyvenv gives tests a Python of their own with the packages of a list, so that they need nothing of the
// system's but python3 and venv.
package pyvenv

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Python installs what the file list names under dir, where it stays until the list changes, and returns the
// interpreter. Where that cannot be done the test is skipped, and with CI set it fails. The argument what names the
// part that was not tried.
func Python(t testing.TB, dir, list, what string) string {
	t.Helper()
	python, err := install(t.Context(), dir, list)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED, %s: %v; install python3 with venv", what, err)
	}
	return python
}

func install(ctx context.Context, dir, list string) (python string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	want, err := os.ReadFile(list)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { // tests of other packages install it too
		return "", err
	}
	python, stamp := filepath.Join(dir, "venv", "bin", "python"), filepath.Join(dir, "installed")
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, want) {
		return python, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"python3", "-m", "venv", "--clear", filepath.Join(dir, "venv")},
		{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", list},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w: %.300s", strings.Join(args[:2], " "), err, out)
		}
	}
	return python, os.WriteFile(stamp, want, 0o644)
}
