package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// stuckRouter is a router in front of a simulated worker. One of its streams, stdout or stderr, is a pipe that nobody
// reads yet.
type stuckRouter struct {
	*process
	unread       *os.File // the pipe's other end
	front, admin string
}

func newStuckRouter(t *testing.T, stderr bool, server string) *stuckRouter {
	t.Helper()
	port, dir := porttest.Row(t, 3), workplace(t)
	warmpath(t, dir, fmt.Sprintf("sim --listen 127.0.0.1:%d --speed 100", port))
	write(t, filepath.Join(dir, "a.toml"), fmt.Sprintf("[server]\nlisten = \"127.0.0.1:%d\"\nadmin = \"127.0.0.1:%d\"\n%s\n"+
		"[[pools]]\n[[pools.workers]]\nurl = \"http://127.0.0.1:%d\"\n", port+1, port+2, server, port))
	unread, wrote, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unread.Close() })
	s := &stuckRouter{unread: unread, front: fmt.Sprintf("http://127.0.0.1:%d", port+1), admin: fmt.Sprintf("http://127.0.0.1:%d", port+2)}
	s.process = launchWith(t, dir, "bin/warmpath serve --config a.toml", func(p *process) {
		if stderr {
			p.cmd.Stderr = wrote
		} else {
			p.cmd.Stdout = wrote
		}
	}, "XDG_CACHE_HOME="+filepath.Join(built, "cache"))
	wrote.Close()
	s.eventually("it serves", func() bool {
		status, _, _ := fetch("POST", s.front+"/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`)
		return status == 200
	})
	return s
}

// ask sends n requests, eight at a time, and returns how many got 200.
func (s *stuckRouter) ask(n int, id string) int64 {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	var answered, hung atomic.Int64
	for range 8 {
		all.Go(func() {
			for range n / 8 {
				req, err := http.NewRequest("POST", s.front+"/v1/completions", strings.NewReader(`{"model":"sim","prompt":"x","max_tokens":1}`))
				if err != nil || hung.Load() > 0 {
					return
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("X-Request-Id", id)
				resp, err := client.Do(req)
				if err != nil {
					hung.Add(1)
					return
				}
				resp.Body.Close()
				if resp.StatusCode == 200 {
					answered.Add(1)
				}
			}
		})
	}
	all.Wait()
	return answered.Load()
}

// lost returns the value of the metric of lost lines.
func (s *stuckRouter) lost() (n int) {
	_, _, text := fetch("GET", s.admin+"/metrics", "")
	if _, rest, ok := strings.Cut(text, "\nwarmpath_access_log_lost_lines_total "); ok {
		fmt.Sscan(rest, &n)
	}
	return n
}

var lostLines = regexp.MustCompile(`level=WARN msg="the access log moves again.* lost_lines=(\d+)`)

// TestNobodyReadsTheAccessLog: all requests are answered while nobody reads the pipe. Lines without room are lost,
// counted and logged. When the pipe is read, whole lines come again.
func TestNobodyReadsTheAccessLog(t *testing.T) {
	t.Parallel()
	s := newStuckRouter(t, false, `access_log = "stdout"`)
	if n := s.ask(1000, "short"); n != 1000 {
		t.Fatalf("%d of 1000 requests were answered 200 while nobody read the access log", n)
	}
	asked := 1000
	long := strings.Repeat("i", 128)
	for s.lost() == 0 && asked < 30_000 {
		if n := s.ask(1000, long); n != 1000 {
			t.Fatalf("%d of 1000 requests were answered 200 after %d", n, asked)
		}
		asked += 1000
	}
	s.says("the access log is stuck", 1)
	var lines atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for in := bufio.NewScanner(s.unread); in.Scan(); lines.Add(1) {
			if !json.Valid(in.Bytes()) {
				t.Errorf("line %d is %.300q", lines.Load(), in.Text())
			}
		}
	}()
	s.says("the access log moves again", 1)
	if n := s.ask(80, "after"); n != 80 {
		t.Errorf("%d of 80 requests were answered 200 after all", n)
	}
	lost := 0
	if m := lostLines.FindStringSubmatch(s.String()); m != nil {
		fmt.Sscan(m[1], &lost)
	}
	s.eventually("every line came or was counted", func() bool { return lines.Load() > int64(asked+80-lost) })
	if lost == 0 || lost != s.lost() || strings.Count(s.String(), "the access log is stuck") != 1 {
		t.Errorf("%d lines lost, %d by the metric; want the same, told once in:\n%s", lost, s.lost(), s)
	}
	t.Logf("%d requests, %d lines, %d lost", asked+80, lines.Load(), lost)
	s.stop()
	<-ended
}

// TestTermWhileNobodyReadsTheAccessLog: the process ends, and logs what it could not write.
func TestTermWhileNobodyReadsTheAccessLog(t *testing.T) {
	t.Parallel()
	s := newStuckRouter(t, false, `access_log = "stdout"`)
	if n := s.ask(1000, "short"); n != 1000 {
		t.Fatalf("%d of 1000 requests were answered 200", n)
	}
	s.stop()
	if !strings.Contains(s.String(), `msg="the access log was stuck at its end; its last lines are lost"`) {
		t.Errorf("got:\n%s", s)
	}
}

// TestReloadFromAStuckAccessLog: the remedy that the log names works, and so does a rotation by SIGHUP after it.
func TestReloadFromAStuckAccessLog(t *testing.T) {
	t.Parallel()
	s := newStuckRouter(t, false, `access_log = "stdout"`)
	if n := s.ask(1000, "short"); n != 1000 {
		t.Fatalf("%d of 1000 requests were answered 200", n)
	}
	file := filepath.Join(s.cmd.Dir, "a.toml")
	access := filepath.Join(s.cmd.Dir, "access.log")
	s.signal(syscall.SIGHUP) // the same stream: its queue stays
	s.says("msg=reloaded", 1)
	write(t, file, strings.Replace(read(t, file), `"stdout"`, fmt.Sprintf("%q", access), 1))
	s.signal(syscall.SIGHUP)
	s.says("msg=reloaded", 2)
	s.says("its last lines are lost", 1)
	// The watcher of the configuration reloads too, so a count of reloads is no proof that SIGHUP was served. The new file
	// is.
	for i, id := range []string{"first", "second"} {
		if n := s.ask(80, id); n != 80 {
			t.Fatalf("%d of 80 requests were answered 200", n)
		}
		s.eventually("lines in the file", func() bool { return linesOf(access, id) == 80 })
		if err := os.Rename(access, fmt.Sprintf("%s.%d", access, i)); err != nil {
			t.Fatal(err)
		}
		s.signal(syscall.SIGHUP)
		s.eventually("a new file after SIGHUP", func() bool { _, err := os.Stat(access); return err == nil })
	}
	if n := s.ask(8, "last"); n != 8 {
		t.Fatalf("%d of 8 requests were answered 200", n)
	}
	s.stop()
	if n := linesOf(access, "last"); n != 8 {
		t.Errorf("%d lines of the last 8 requests before SIGTERM", n)
	}
}

// linesOf counts the lines of requests with that id in the access log and in its renamed file: a reload opens the new
// file before it closes the old one.
func linesOf(access, id string) (n int) {
	files, _ := filepath.Glob(access + "*")
	for _, file := range files {
		b, _ := os.ReadFile(file)
		n += strings.Count(string(b), `"id":"`+id+`"`)
	}
	return n
}

// TestNobodyReadsTheLog: the router's own log at its most verbose level delays no request, nor the end.
func TestNobodyReadsTheLog(t *testing.T) {
	t.Parallel()
	s := newStuckRouter(t, true, `log_level = "debug"`)
	if n := s.ask(2000, strings.Repeat("i", 128)); n != 2000 {
		t.Fatalf("%d of 2000 requests were answered 200 while nobody read the log", n)
	}
	s.stop()
}
