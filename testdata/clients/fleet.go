package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	model   = "tiny"
	slashed = "org/tiny" // another that the workers serve
	count   = 4          // workers
	startup = 60 * time.Second
)

// fleet is a warmpath with its workers.
type fleet struct {
	root, dir string
	binary    string   // warmpath
	url       string   // of the router
	admin     string   // of its own pages
	workers   []string // URLs of the workers
	env       []string // for scripts
	router    int      // process id
	aliased   bool     // the clients' models are aliases
	ended     []func()
}

// open starts warmpath sim and warmpath serve on free ports and waits until the router is ready.
func open(ctx context.Context, root, binary string) (*fleet, error) {
	dir, err := os.MkdirTemp("", "warmpath-clients-")
	if err != nil {
		return nil, err
	}
	h := &fleet{root: root, dir: dir, binary: binary, aliased: *byAlias}
	if err := h.start(ctx, binary); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *fleet) start(ctx context.Context, binary string) error {
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("%w; run make build first", err)
	}
	urls, err := h.sim(ctx, binary, count)
	if err != nil {
		return err
	}
	h.workers = urls
	return h.serve(ctx, binary, "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n[[pools]]\n"+
		"health_interval = \"500ms\"\n"+h.workersOf(urls))
}

// workersOf is the part of a configuration that lists the workers of a pool.
func (h *fleet) workersOf(urls []string) string {
	var b strings.Builder
	for _, u := range h.below(urls) {
		fmt.Fprintf(&b, "[[pools.workers]]\nurl = %q\n", u)
	}
	return b.String()
}

// sim starts n workers.
func (h *fleet) sim(ctx context.Context, binary string, n int, more ...string) ([]string, error) {
	return h.process(ctx, regexp.MustCompile(`^(http://\S+)$`), n, binary, append([]string{"sim",
		"--listen", "127.0.0.1:0", "--count", fmt.Sprint(n), "--model", h.served(model), "--model",
		h.served(slashed), "--speed", "20"},
		more...)...)
}

// serve starts the router and waits until it is ready.
func (h *fleet) serve(ctx context.Context, binary, toml string) error {
	file := filepath.Join(h.dir, "warmpath.toml")
	if *byPaths {
		toml = strings.Replace(toml, "[server]\n", "[server]\nroot_paths = [\""+rootPath+"\"]\n", 1)
	}
	if err := os.WriteFile(file, []byte(toml+h.modelTables()), 0o644); err != nil {
		return err
	}
	listen, err := h.process(ctx, regexp.MustCompile(`msg=serving .*listen=(\S+ admin=\S+)`), 1, binary, "serve",
		"--config", file)
	if err != nil {
		return err
	}
	front, admin, _ := strings.Cut(listen[0], " admin=")
	h.url, h.admin = "http://"+front, "http://"+admin
	if err := h.ready(ctx); err != nil {
		return err
	}
	if h.aliased {
		err = h.watch(front)
	}
	if *byPaths {
		h.url += rootPath
	}
	return err
}

// ready waits until the router has seen all its workers serve.
func (h *fleet) ready(ctx context.Context) error {
	for {
		req, err := http.NewRequestWithContext(ctx, "GET", h.url+"/ready", nil)
		if err != nil {
			return err
		}
		if r, err := http.DefaultClient.Do(req); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.New("the router did not become ready")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// process starts a command, which close ends, and waits for n lines that fit; it returns what they hold. Further
// output goes to a log, shown when the command ends badly.
func (h *fleet) process(ctx context.Context, line *regexp.Regexp, n int, name string, args ...string) ([]string,
	error) {
	cmd := exec.Command(name, args...)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h.router = cmd.Process.Pid // the last one
	found := make(chan string, n)
	var tail struct {
		sync.Mutex
		lines []string // the last of them
	}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			tail.Lock()
			tail.lines = append(tail.lines[max(0, len(tail.lines)-20):], s.Text())
			tail.Unlock()
			if m := line.FindStringSubmatch(s.Text()); m != nil {
				select {
				case found <- m[1]:
				default:
				}
			}
		}
		io.Copy(io.Discard, out)
	}()
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait(); in.Close() }()
	h.ended = append(h.ended, func() { stop(cmd, gone) })
	var got []string
	for len(got) < n {
		select {
		case s := <-found:
			got = append(got, s)
		case err := <-gone:
			gone <- err
			tail.Lock()
			defer tail.Unlock()
			return nil, fmt.Errorf("%s %s: %v\n%s", name, args[0], err, strings.Join(tail.lines, "\n"))
		case <-ctx.Done():
			return nil, fmt.Errorf("%s %s said nothing of its address", name, args[0])
		}
	}
	return got, nil
}

// stop ends a command, by SIGKILL if SIGTERM does not.
func stop(cmd *exec.Cmd, gone chan error) {
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		cmd.Process.Kill()
		<-gone
	}
}

func (h *fleet) close() {
	for i := len(h.ended) - 1; i >= 0; i-- {
		h.ended[i]()
	}
	os.RemoveAll(h.dir)
}

// running is how many requests the workers have in hand.
func (h *fleet) running() (int, error) {
	sum := 0
	for _, u := range h.workers {
		r, err := http.Get(u + "/sim/stats")
		if err != nil {
			return 0, err
		}
		var s struct{ Running, Waiting int }
		err = json.NewDecoder(r.Body).Decode(&s)
		r.Body.Close()
		if err != nil {
			return 0, err
		}
		sum += s.Running + s.Waiting
	}
	return sum, nil
}

// waitRunning waits up to 10 s for it; a loaded machine takes longer than the router.
func (h *fleet) waitRunning(wanted int, what string) error {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		n, err := h.running()
		if err != nil || n == wanted {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: %d requests run at the workers, want %d", what, n, wanted)
		}
	}
}
