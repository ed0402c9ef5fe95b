package overflow

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

func TestBody(t *testing.T) {
	dir := t.TempDir()
	var s Store
	text := strings.Repeat("0123456789", 50_000)
	b, err := s.Keep(Limits{Dir: dir, Most: 1 << 20}, "a", []byte(text[:1000]))
	if err != nil {
		t.Fatal(err)
	}
	from := strings.NewReader(text[1000:])
	f := func(goal int64, ended bool, size int) {
		t.Helper()
		if got, err := b.Read(context.Background(), from, goal); got != ended || err != nil {
			t.Fatalf("to %d: %v, %v; want %v", goal, got, err, ended)
		}
		if got, err := b.Bytes(); string(got) != text[:size] || err != nil || b.Size() != int64(size) || s.Taken() != int64(size) {
			t.Errorf("to %d: %d bytes, %v, %d are counted; want %d", goal, len(got), err, s.Taken(), size)
		}
	}
	f(1000, false, 1000)
	f(2000, false, 2000)
	f(200_000, false, 200_000)
	f(500_000, false, 500_000)
	f(500_001, true, 500_000)
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("a file has a name: %v", files)
	}
	got, _ := b.Bytes()
	b.Seal()
	if string(got) != text {
		t.Error("what was returned does not hold once no more is added")
	}
	b.Close()
	b.Close()
	if s.Taken() != 0 {
		t.Errorf("%d bytes are counted after the end", s.Taken())
	}
}

// TestLimits: one client's bodies have half of it together, another's have room beside them, and all give it back.
func TestLimits(t *testing.T) {
	var s Store
	l := Limits{Dir: t.TempDir(), Most: 2000}
	if _, err := s.Keep(l, "a", make([]byte, 1001)); err != ErrFull || s.Taken() != 0 {
		t.Errorf("one that is over the limit: %v, %d taken", err, s.Taken())
	}
	a, err := s.Keep(l, "a", make([]byte, 600))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Keep(l, "a", make([]byte, 500)); err != ErrFull || s.Taken() != 600 {
		t.Errorf("a second: %v, %d taken", err, s.Taken())
	}
	if _, err := a.Read(context.Background(), bytes.NewReader(make([]byte, 500)), 2000); err != ErrFull || s.Taken() != 600 {
		t.Errorf("the first, with more: %v, %d taken", err, s.Taken())
	}
	a.Close()
	b, err := s.Keep(l, "a", make([]byte, 1000))
	if err != nil || s.Taken() != 1000 {
		t.Fatalf("after its end: %v, %d taken", err, s.Taken())
	}
	if _, err := s.Keep(l, "b", make([]byte, 501)); err != ErrFull {
		t.Errorf("another client's, with more than is left for the next: %v", err)
	}
	c, err := s.Keep(l, "b", make([]byte, 500))
	if err != nil || s.Taken() != 1500 {
		t.Fatalf("another client's: %v, %d taken", err, s.Taken())
	}
	b.Close()
	c.Close()
}

// TestFailures: of the file, of the reader, and of who waits, each with its own error. Nothing is left.
func TestFailures(t *testing.T) {
	var s Store
	var failed *Failure
	if _, err := s.Keep(Limits{Dir: filepath.Join(t.TempDir(), "none"), Most: 1000}, "a", nil); !errors.As(err, &failed) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	b, err := s.Keep(Limits{Dir: t.TempDir(), Most: 1000}, "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.Bytes(); len(got) != 0 || err != nil {
		t.Errorf("an empty body: %q, %v", got, err)
	}
	own, left := errors.New("own"), errors.New("left")
	if _, err := b.Read(context.Background(), io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(own)), 9); err != own || b.Size() != 3 {
		t.Errorf("a reader that fails: %v, %d bytes", err, b.Size())
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(left)
	if _, err := b.Read(ctx, strings.NewReader("abc"), 9); err != left {
		t.Errorf("a client that left: %v", err)
	}
	b.file.Close()
	if _, err := b.Read(context.Background(), strings.NewReader("abc"), 9); !errors.As(err, &failed) {
		t.Errorf("a file that cannot be written: %v", err)
	}
	b.Close()
	if s.Taken() != 0 {
		t.Errorf("%d bytes are counted after the end", s.Taken())
	}
}

// TestAFullDisk is a Failure.
func TestAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	var s Store
	var failed *Failure
	b := &Body{part: s.Part("a"), most: 1000, file: full}
	if _, err := b.Read(context.Background(), strings.NewReader("abc"), 9); !errors.As(err, &failed) {
		t.Errorf("%v; want a Failure", err)
	}
	b.Close()
	if s.Taken() != 0 {
		t.Errorf("%d bytes are counted after the end", s.Taken())
	}
}

// TestADiskThatForgets: memory whose file cannot be read is a panic of who reads it, and not the end of the process.
func TestADiskThatForgets(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("how a file's end is mapped differs")
	}
	var s Store
	b, err := s.Keep(Limits{Dir: t.TempDir(), Most: 1 << 20}, "a", bytes.Repeat([]byte("x"), 100_000))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	panicked := make(chan bool)
	go func() {
		defer func() { panicked <- recover() != nil }()
		mem, err := b.Bytes()
		if err != nil || b.file.Truncate(0) != nil {
			return
		}
		_ = bytes.Count(mem, []byte("y"))
	}()
	if !<-panicked {
		t.Error("the memory of a file that has gone was read")
	}
}
