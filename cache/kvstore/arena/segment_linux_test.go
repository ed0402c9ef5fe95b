package arena

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// name returns a name that no other test uses, and deletes the segment at the end.
func name(t *testing.T) string {
	n := fmt.Sprintf("warmpath-test-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
	t.Cleanup(func() {
		os.Remove(filepath.Join(shmDir, n))
		os.Remove(filepath.Join(shmDir, "."+n+".warmpath"))
	})
	return n
}

func open(t *testing.T, c Config) *Arena {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	a, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func inode(t *testing.T, name string) uint64 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(filepath.Join(shmDir, name), &st); err != nil {
		return 0
	}
	return st.Ino
}

// TestMain can also run a worker: it maps the given segment and confirms it, and runs until its input ends.
func TestMain(m *testing.M) {
	if path := os.Getenv("ARENA_WORKER"); path != "" {
		worker(path)
		return
	}
	os.Exit(m.Run())
}

func worker(path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	st, _ := f.Stat()
	mem, err := syscall.Mmap(int(f.Fd()), 0, int(st.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	f.Close()
	fmt.Println("mapped", len(mem), err)
	bufio.NewReader(os.Stdin).ReadString('\n')
	if os.Getenv("ARENA_UNLINK") != "" {
		os.Remove(path)
	}
}

// startWorker starts a process that maps the segment, and returns a function that ends it.
func startWorker(t *testing.T, name string, env ...string) (stop func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "ARENA_WORKER="+filepath.Join(shmDir, name)), env...)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if !strings.HasPrefix(line, "mapped") {
		t.Fatalf("the worker says %q", line)
	}
	done := false
	stop = func() {
		if !done {
			done = true
			in.Close()
			cmd.Wait()
		}
	}
	t.Cleanup(stop)
	return stop
}

func TestSegmentGoesWithItsDaemon(t *testing.T) {
	n := name(t)
	a := open(t, Config{Bytes: 1 << 20, Segment: n, Mode: 0o600})
	if st, err := os.Stat(filepath.Join(shmDir, n)); err != nil || st.Size() != 1<<20 || st.Mode().Perm() != 0o600 {
		t.Errorf("the segment is %v, %v", st, err)
	}
	copy(a.Bytes(Extent{0, 5}), "hello")
	if b, _ := os.ReadFile(filepath.Join(shmDir, n)); string(b[:5]) != "hello" {
		t.Errorf("the file has %q", b[:5])
	}
	if kept, err := a.Close(); kept || err != nil {
		t.Errorf("Close = %v, %v; nobody has it mapped", kept, err)
	}
	if left, _ := filepath.Glob(filepath.Join(shmDir, "*"+n+"*")); len(left) > 0 {
		t.Errorf("files left behind: %v", left)
	}
}

func TestSegmentOutlivesARestart(t *testing.T) {
	n := name(t)
	a := open(t, Config{Bytes: 1 << 20, Segment: n})
	first := inode(t, n)
	stop := startWorker(t, n)
	if kept, err := a.Close(); !kept || err != nil {
		t.Fatalf("Close = %v, %v; a worker has it mapped", kept, err)
	}
	a = open(t, Config{Bytes: 1 << 20, Segment: n})
	if got := inode(t, n); got != first || !a.Attached {
		t.Errorf("after a restart: inode %d, attached %v; want %d, true", got, a.Attached, first)
	}
	if kept, _ := a.Close(); !kept {
		t.Error("deleted while a worker has it mapped")
	}
	if _, err := Open(Config{Bytes: 2 << 20, Segment: n}); err == nil || !strings.Contains(err.Error(), "workers have it mapped") {
		t.Errorf("another size under a worker: %v", err)
	}
	stop()
	a = open(t, Config{Bytes: 2 << 20, Segment: n})
	if a.Attached {
		t.Error("attached, and the worker has gone")
	}
	if kept, err := a.Close(); kept || err != nil {
		t.Errorf("Close = %v, %v", kept, err)
	}
}

// The next start of any other daemon deletes the segment of a killed one, but not one that a process has mapped.
func TestOrphans(t *testing.T) {
	was := shmDir
	defer func() { shmDir = was }()
	shmDir = filepath.Join(was, name(t))
	if err := os.Mkdir(shmDir, 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(shmDir)
	kill := func(a *Arena) {
		if err := errors.Join(unix.Munmap(a.segment.mem), unix.Close(a.segment.fd)); err != nil {
			t.Error(err)
		}
	}
	kill(open(t, Config{Bytes: PageSize, Segment: "killed"}))
	kill(open(t, Config{Bytes: PageSize, Segment: "own"}))
	kill(open(t, Config{Bytes: PageSize, Segment: "mapped"}))
	kill(open(t, Config{Bytes: PageSize, Segment: "renamed"}))
	os.Remove(filepath.Join(shmDir, "renamed"))
	os.WriteFile(filepath.Join(shmDir, "renamed"), []byte("somebody's"), 0o600)
	serving := open(t, Config{Bytes: PageSize, Segment: "serving"})
	worker, err := os.OpenFile(filepath.Join(shmDir, "mapped"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	RemoveOrphans("own", slog.New(slog.NewTextHandler(&log, nil)))
	for file, want := range map[string]bool{"killed": false, ".killed.warmpath": false, "own": true, ".own.warmpath": true,
		"mapped": true, ".mapped.warmpath": true, "serving": true, ".serving.warmpath": true, "renamed": true,
		".renamed.warmpath": false} {
		if got := inode(t, file) != 0; got != want {
			t.Errorf("%s is there: %v; want %v", file, got, want)
		}
	}
	if got := strings.Count(log.String(), "was given back"); got != 2 {
		t.Errorf("%d lines tell of it; want 2: %s", got, &log)
	}
	worker.Close()
	if _, err := serving.Close(); err != nil {
		t.Error(err)
	}
}

func TestNameComesBack(t *testing.T) {
	n := name(t)
	a := open(t, Config{Bytes: 1 << 20, Segment: n})
	defer a.Close()
	first := inode(t, n)
	startWorker(t, n, "ARENA_UNLINK=1")()
	if inode(t, n) != 0 {
		t.Fatal("the worker did not delete the name")
	}
	a.Tend()
	if got := inode(t, n); got != first {
		t.Errorf("inode %d; want %d", got, first)
	}
	os.Remove(filepath.Join(shmDir, "."+n+".warmpath"))
	a.Tend()
	os.Remove(filepath.Join(shmDir, n))
	a.Tend()
	if got := inode(t, n); got != first {
		t.Errorf("after the second name was deleted: inode %d; want %d", got, first)
	}
	os.Remove(filepath.Join(shmDir, n))
	os.WriteFile(filepath.Join(shmDir, n), nil, 0o600)
	a.Tend()
	if a.segment.missing != true {
		t.Error("another file has the name, and nobody is told")
	}
}

func TestSegmentRefused(t *testing.T) {
	n := name(t)
	f := func(c Config, want string) {
		t.Helper()
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%+v): %v; want %q", c, err, want)
		}
	}
	f(Config{Bytes: 1 << 20, Segment: "a/b"}, "no name of a file")
	f(Config{Bytes: 1 << 20, Segment: ".."}, "no name of a file")
	f(Config{Bytes: 100}, "less than a page")
	f(Config{Bytes: 1 << 50, Segment: n}, "has room for")
	if inode(t, n) != 0 || inode(t, "."+n+".warmpath") != 0 {
		t.Error("a segment for which there is no room is left behind")
	}
	os.WriteFile(filepath.Join(shmDir, n), []byte("x"), 0o600)
	f(Config{Bytes: 1 << 20, Segment: n}, "is not warmpath's")
	os.Remove(filepath.Join(shmDir, n))
	a := open(t, Config{Bytes: 1 << 20, Segment: n})
	f(Config{Bytes: 1 << 20, Segment: n}, "another daemon serves it")
	if _, err := a.Close(); err != nil {
		t.Error(err)
	}
}
