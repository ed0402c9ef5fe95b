package front

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
)

// logging returns a log file and what it logs for the operator.
func logging(t *testing.T, path string) (*logFile, *logtest.Log) {
	t.Helper()
	told := new(logtest.Log)
	l, err := newLogFile(path, slog.New(slog.NewTextHandler(told, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l, told
}

// put writes lines, and lets the time between two looks at the name pass before each.
func put(t *testing.T, l *logFile, n int) {
	t.Helper()
	for i := range n {
		l.checked = time.Time{}
		if _, err := fmt.Fprintf(l, "line %d\n", i); err != nil {
			t.Error(err)
		}
	}
}

func wantTold(t *testing.T, told *logtest.Log, warn, info int) {
	t.Helper()
	if w, i := strings.Count(told.String(), "level=WARN"), strings.Count(told.String(), "level=INFO"); w != warn || i != info {
		t.Errorf("%d WARN, %d INFO; want %d, %d:\n%s", w, i, warn, info, told.String())
	}
}

func TestLogOnAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	l, told := logging(t, path)
	put(t, l, 100)
	wantTold(t, told, 1, 0)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	put(t, l, 3)
	wantTold(t, told, 1, 1)
	if b, err := os.ReadFile(path); string(b) != "line 0\nline 1\nline 2\n" || !strings.Contains(told.String(), "lost_lines=100") {
		t.Errorf("%q, %v, told %s", b, err, told.String())
	}
}

func TestLogWhoseFolderIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "access.log")
	l, told := logging(t, path)
	put(t, l, 1)
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	put(t, l, 100)
	wantTold(t, told, 1, 0)
	if b, _ := os.ReadFile(dir + ".old/access.log"); strings.Count(string(b), "\n") != 101 {
		t.Errorf("the file that was moved has %d lines; want 101", strings.Count(string(b), "\n"))
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, l, 2)
	wantTold(t, told, 1, 1)
	if b, _ := os.ReadFile(path); string(b) != "line 0\nline 1\n" {
		t.Errorf("the new file holds %q", b)
	}
	// A rotation without a signal.
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	put(t, l, 1)
	wantTold(t, told, 1, 1)
	if b, _ := os.ReadFile(path); string(b) != "line 0\n" {
		t.Errorf("after a rotation the file holds %q", b)
	}
}

// TestTornLine: half a line that got out before the disk was full is completed before the next one.
func TestTornLine(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	told := new(logtest.Log)
	l := &logFile{file: w, log: slog.New(slog.NewTextHandler(told, nil))}
	full := make(chan struct{})
	go func() {
		defer close(full)
		_, _ = r.Read(make([]byte, 1)) // some of the line is out; the pipe takes 64 KB more
		_ = w.SetWriteDeadline(time.Unix(1, 0))
	}()
	_, _ = l.Write([]byte(strings.Repeat("x", 1<<20) + "\n"))
	<-full
	wantTold(t, told, 1, 0)
	_ = w.SetWriteDeadline(time.Time{})
	got := make(chan string, 1)
	go func() { b, _ := io.ReadAll(r); got <- string(b) }()
	_, _ = l.Write([]byte("next\n"))
	w.Close()
	if s := <-got; strings.Trim(s, "x") != "\nnext\n" || len(s) != 1<<20-1+len("\nnext\n") {
		t.Errorf("the log holds %q, and %d bytes in all", strings.Trim(s, "x"), len(s))
	}
	if !strings.Contains(told.String(), "lost_lines=0") {
		t.Errorf("told %s; want that no line is lost", told.String())
	}
	wantTold(t, told, 1, 1)
}

// TestTornLineOfAnotherProcess: half a line that the process before left does not swallow the next one, nor does one
// that the file before a reload has left.
func TestTornLineOfAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	half := func() {
		t.Helper()
		f, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(`{"half`); err != nil {
			t.Fatal(err)
		}
	}
	half()
	l, _ := logging(t, path)
	put(t, l, 2)
	next, _ := logging(t, path)
	half()
	next.succeed(l)
	put(t, next, 1)
	if b, err := os.ReadFile(path); string(b) != "{\"half\nline 0\nline 1\n{\"half\nline 0\n" {
		t.Errorf("the log holds %q, %v", b, err)
	}
}

// TestReloadOnAFullDisk: lines lost before a reload are logged after it, as the operator frees the disk and reloads.
func TestReloadOnAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	l, told := logging(t, path)
	put(t, l, 5)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	next, err := newLogFile(path, l.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.close)
	w := &accessWriter{file: l, lost: new(atomic.Uint64)}
	w.next.Store(next)
	w.Line([]byte("line\n"))
	wantTold(t, told, 1, 1)
	if b, err := os.ReadFile(path); string(b) != "line\n" || !strings.Contains(told.String(), "lost_lines=5") {
		t.Errorf("the log holds %q, %v, told %s", b, err, told.String())
	}
}
