package host

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFullDisk: the host warns once of a module cache that it cannot write, on a full disk or for another reason, and
// loads strategies.
func TestFullDisk(t *testing.T) {
	f := func(what, dir string) {
		t.Helper()
		var log bytes.Buffer
		h := newHost(t, Config{CacheDir: dir, Slots: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range 2 {
			s, err := h.Load(ctx, "guest", wat(t, "tiny"), Options{})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if r := s.Pick(frame(4, 2)); r.Fallback != "" {
				t.Errorf("%s: %+v", what, r)
			}
			s.Close(ctx)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 1 {
			t.Errorf("%s: %d warnings; want 1:\n%s", what, n, log.String())
		}
	}
	read := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(read, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	f("a directory that cannot be made", filepath.Join(read, "cache"))
	f("a filesystem that takes no files", "/proc/self/cache")

	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("SKIPPED: no tmpfs can be mounted here, so a full disk is not shown: %v", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("1 MiB fits a disk of 64 KiB")
	}
	f("a full disk", dir)
}
