package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// built is the folder of bin/warmpath, which TestMain builds once a run; the modules' cache is there too.
var built string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if built, err = os.MkdirTemp("", "warmpath-test"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(built)
		build := exec.Command("go", "build", "-tags", "grpcnotrace", "-buildvcs=false", "-o",
			filepath.Join(built, "bin", "warmpath"), "../warmpath")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		if err := shareGoCache(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// shareGoCache has the compiler of the tests' projects use the cache that there is. By XDG_CACHE_HOME, which keeps
// warmpath's cache apart, it would begin with an empty one, and compile the standard library twice.
func shareGoCache() error {
	dir, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env GOCACHE: %w", err)
	}
	return os.Setenv("GOCACHE", strings.TrimSpace(string(dir)))
}

// workplace returns an empty folder with the built program as bin/warmpath.
func workplace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(built, "bin"), filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// process is a command that runs, or has run, in place of a shell.
type process struct {
	t    *testing.T
	line string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // of its end
	mu   sync.Mutex
	text bytes.Buffer // both outputs
	out  bytes.Buffer // standard output alone
}

// to writes to both buffers, or to text alone.
type to struct {
	p    *process
	both bool
}

func (w to) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	if w.both {
		w.p.out.Write(b)
	}
	return w.p.text.Write(b)
}

func (p *process) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// launch starts a line as a shell would read it. exec gives the command the shell's pid; it is killed at the test's
// end.
func launch(t *testing.T, dir, line string, env ...string) *process {
	t.Helper()
	return launchWith(t, dir, line, func(*process) {}, env...)
}

// launchWith is launch, with a change of the command before it starts.
func launchWith(t *testing.T, dir, line string, change func(*process), env ...string) *process {
	t.Helper()
	p := &process{t: t, line: line, done: make(chan struct{})}
	p.cmd = exec.Command("sh", "-c", "exec env "+line)
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = to{p, true}, to{p, false}
	p.cmd.WaitDelay = 5 * time.Second
	change(p)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// warmpath starts bin/warmpath with a cache of modules apart from the user's.
func warmpath(t *testing.T, dir, args string) *process {
	t.Helper()
	return launch(t, dir, "bin/warmpath "+args, "XDG_CACHE_HOME="+filepath.Join(built, "cache"))
}

// patience bounds the wait for a program's end: a compiler that starts cold on a busy machine takes over a minute.
const patience = 3 * time.Minute

// end waits for the end and returns the exit code.
func (p *process) end() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s has not ended within %v:\n%s", p.line, patience, p)
	}
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		p.t.Fatalf("%s: %v", p.line, p.err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// succeed waits for exit 0 and returns the standard output.
func (p *process) succeed() string {
	p.t.Helper()
	if code := p.end(); code != 0 {
		p.t.Fatalf("%s: exit %d, want 0:\n%s", p.line, code, p)
	}
	return p.out.String()
}

// stop sends SIGTERM, on which every command that serves exits 0.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	p.succeed()
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v:\n%s", p.line, err, p)
	}
}

// says waits until the output contains want n times.
func (p *process) says(want string, n int) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("says %q %d times", want, n), func() bool { return strings.Count(p.String(), want) >= n })
}

// eventually waits for ok while the process runs.
func (p *process) eventually(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.done:
			if !ok() {
				p.t.Fatalf("%s ended (%v) before it was so: %s:\n%s", p.line, p.err, what, p)
			}
			return
		default:
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s: not within %v: %s:\n%s", p.line, patience, what, p)
		}
	}
}

// fetch returns status 0 when there is no answer.
func fetch(method, url, body string) (status int, header http.Header, answer string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Warmpath-Explain", "1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err.Error()
	}
	return resp.StatusCode, resp.Header, string(b)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
