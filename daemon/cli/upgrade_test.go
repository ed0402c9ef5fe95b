package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// site is a daemon whose binary and configuration a test replaces. Its processes write to one file: the reader of a
// pipe would end with the first process, and the others with the pipe.
type site struct {
	t             *testing.T
	dir, bin, log string
	client, admin string // URLs
	pid           int    // of the serving process
}

// newSite starts a simulated worker and a daemon.
func newSite(t *testing.T, speed string) *site {
	return newSiteWith(t, speed, func(string) (server, tables string) { return "", "" })
}

// newSiteWith adds lines to [server] and after the worker, which more returns for the folder.
func newSiteWith(t *testing.T, speed string, more func(dir string) (server, tables string)) *site {
	t.Helper()
	port := porttest.Row(t, 3)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", port+i) }
	dir := workplace(t)
	s := &site{t: t, dir: dir, bin: filepath.Join(dir, "warmpath"), log: filepath.Join(dir, "log"), client: "http://" + at(1),
		admin: at(2)}
	warmpath(t, dir, "sim --listen "+at(0)+" --speed "+speed)
	server, tables := more(dir)
	write(t, filepath.Join(dir, "a.toml"), fmt.Sprintf("[server]\nlisten = %q\nadmin = %q\nstate_file = \"state\"\n"+
		"drain_timeout = \"2m\"\n%s[[pools]]\n[[pools.workers]]\nurl = \"http://%s\"\n%s", at(1), at(2), server, at(0), tables))
	s.install(read(t, filepath.Join(built, "bin", "warmpath")))
	log, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	p := launchWith(t, dir, s.bin+" serve --config a.toml", func(p *process) { p.cmd.Stdout, p.cmd.Stderr = log, log },
		"XDG_CACHE_HOME="+filepath.Join(built, "cache"))
	s.pid = p.cmd.Process.Pid
	s.says(`msg="worker up"`, 1)
	return s
}

// install puts a program into the binary's place in one step, as a package manager does.
func (s *site) install(program string) {
	s.t.Helper()
	syscall.ForkLock.RLock() // who is forked meanwhile would hold the file open for writing, and nobody could start it
	err := os.WriteFile(s.bin+".new", []byte(program), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(s.bin+".new", s.bin); err != nil {
		s.t.Fatal(err)
	}
}

// says waits until the log contains want n times.
func (s *site) says(want string, n int) {
	s.t.Helper()
	s.await(fmt.Sprintf("the log says %q %d times", want, n), func() bool { return strings.Count(read(s.t, s.log), want) >= n })
}

// await waits for ok.
func (s *site) await(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within %v: %s:\n%s", patience, what, read(s.t, s.log))
		}
	}
}

// upgrade runs the command, and returns its exit code and output.
func (s *site) upgrade(more string) (code int, text string) {
	s.t.Helper()
	p := launch(s.t, s.dir, "bin/warmpath upgrade --admin "+s.admin+" "+more)
	code = p.end()
	if m := regexp.MustCompile(`upgraded: process (\d+)`).FindStringSubmatch(p.String()); m != nil {
		s.serves(m[1])
	}
	return code, p.String()
}

// serves records the process that serves now.
func (s *site) serves(pid string) {
	s.t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil || n == s.pid {
		s.t.Fatalf("%s serves in place of %d, %v", pid, s.pid, err)
	}
	s.pid = n
	next, err := os.FindProcess(n)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = next.Kill() })
}

// streamers is clients that read one stream after another, over connections that they keep.
type streamers struct {
	stop    chan struct{}
	running sync.WaitGroup
	whole   atomic.Int64

	mu  sync.Mutex
	cut []string
}

func newStreamers(t *testing.T, url string, n int) *streamers {
	s := &streamers{stop: make(chan struct{})}
	for range n {
		s.running.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
			defer client.CloseIdleConnections()
			for {
				select {
				case <-s.stop:
					return
				default:
				}
				if err := readStream(client, url); err != nil {
					s.mu.Lock()
					s.cut = append(s.cut, err.Error())
					s.mu.Unlock()
					continue
				}
				s.whole.Add(1)
			}
		})
	}
	t.Cleanup(s.end)
	return s
}

// end waits until each client has read its last stream.
func (s *streamers) end() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.running.Wait()
}

// readStream reads a stream to its end.
func readStream(client *http.Client, url string) error {
	resp, err := client.Post(url+"/v1/completions", "application/json",
		strings.NewReader(`{"model":"sim","prompt":"x","max_tokens":60,"stream":true,"ignore_eos":true}`))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	events, done := 0, false
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		events++
		done = done || lines.Text() == "data: [DONE]"
		if strings.Contains(lines.Text(), `"error"`) {
			return errors.New(lines.Text())
		}
	}
	if err := lines.Err(); err != nil || !done || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d, %d lines, [DONE] %v: %w", resp.StatusCode, events, done, err)
	}
	return nil
}

// TestUpgradeUnderLoad: while binaries are replaced under requests and streams, good ones and one that ends at once, no
// request is refused and no stream is cut off. testdata/trials/faults has the long form.
func TestUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	s := newSite(t, "3")
	streams := newStreamers(t, s.client, 24)
	c := newCrowd(t, s.client, 4)
	served := func() {
		answers, whole := c.answers.Load(), streams.whole.Load()
		s.await("the clients are served", func() bool {
			return c.answers.Load() > answers+20 && streams.whole.Load() > whole+10
		})
	}
	served()
	good := read(t, s.bin)
	for n := range 3 {
		s.install("#!/bin/sh\nexit 3\n")
		if code, text := s.upgrade(""); code != 1 || !strings.Contains(text, s.bin+" was started and ended (exit status 3)") {
			t.Fatalf("a binary that ends at once: exit %d: %s", code, text)
		}
		s.says("upgrade failed: this process serves on as before", n+1)
		s.install(good)
		if code, text := s.upgrade(""); code != 0 {
			t.Fatalf("upgrade %d: exit %d: %s\n%s", n, code, text, read(t, s.log))
		}
		served()
	}
	streams.end()
	c.end()
	if len(c.failed) > 0 || len(streams.cut) > 0 {
		t.Errorf("%d requests failed beside %d that were answered: %.500q; %d streams beside %d whole ones: %.500q", len(c.failed),
			c.answers.Load(), c.failed, len(streams.cut), streams.whole.Load(), streams.cut)
	}
	s.says("msg=drained", 3)
}

// TestUpgradeKeepsDrains: a worker that an operator has drained stays drained in the new process, up or down. One that
// he has put back, although the file drains it, serves there.
func TestUpgradeKeepsDrains(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, "1000", func(string) (server, tables string) {
		return "", "id = \"a\"\n[[pools.workers]]\nid = \"b\"\nurl = \"http://127.0.0.1:1\"\n" +
			"[[pools.workers]]\nid = \"c\"\nurl = \"http://127.0.0.1:2\"\ndrain = true\n"
	})
	for _, c := range []string{"drain a", "drain b", "undrain c"} {
		launch(t, s.dir, "bin/warmpath "+c+" --admin "+s.admin).succeed()
	}
	const want = `a draining, b down, c down: drained a b`
	now := func() string {
		var o operator.Overview // read anew: a kept connection belongs to the old process
		p := launch(t, s.dir, "bin/warmpath status --json --admin "+s.admin)
		p.end()
		if err := json.Unmarshal(p.out.Bytes(), &o); err != nil || len(o.Pools) != 1 {
			t.Fatalf("%v: %s", err, p)
		}
		var states, drained []string
		for _, w := range o.Pools[0].Workers {
			states = append(states, w.ID+" "+w.State)
			if w.Drained {
				drained = append(drained, w.ID)
			}
		}
		return strings.Join(states, ", ") + ": drained " + strings.Join(drained, " ")
	}
	s.await("before: "+want, func() bool { return now() == want })
	if code, text := s.upgrade(""); code != 0 {
		t.Fatalf("exit %d: %s", code, text)
	}
	if got := now(); !strings.HasSuffix(got, ": drained a b") {
		t.Fatalf("the new process serves with %s; want a and b drained from its first request on", got)
	}
	s.await("after: "+want, func() bool { return now() == want })
}

// TestUpgradeThatFails: for any file at the path of the binary, the old process serves on, and logs why. SIGUSR2 then
// replaces it all the same.
func TestUpgradeThatFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, "1000")
	good, file := read(t, s.bin), filepath.Join(s.dir, "a.toml")
	conf := read(t, file)
	for n, c := range []struct{ program, conf, flags, want string }{
		{"no program", conf, "", s.bin + " cannot be started: "},
		{"#!/bin/sh\nexec sleep 1000\n", conf, "--timeout 1s", "did not serve within 1s"},
		{"#!/bin/sh\nexec sleep 1000 3>&- 4>&- 5>&- 6>&-\n", conf, "", "did not say that it serves"},
		{good, conf + "[server.x]\n", "", s.bin + " was started and failed: conf: "},
		{good, strings.Replace(conf, "[[pools]]", "access_log = \"/no/such/folder/file\"\n[[pools]]", 1), "", "/no/such/folder"},
		{good, strings.Replace(conf, `listen = "127.0.0.1:`, `listen = ":`, 1), "", "restart, or keep the address"},
		{good, conf, "--timeout 1h", "timeout is a time up to 10m0s"},
	} {
		s.install(c.program)
		write(t, file, c.conf)
		if code, text := s.upgrade(c.flags); code != 1 || !strings.Contains(text, c.want) {
			t.Errorf("%d: exit %d; want 1 and %q:\n%s", n, code, c.want, text)
		}
		if status, _, body := fetch("POST", s.client+"/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`); status != 200 {
			t.Errorf("%d: the old process answers %d %s", n, status, body)
		}
	}
	if n := strings.Count(read(t, s.log), "level=ERROR msg=\"upgrade failed"); n != 6 {
		t.Errorf("%d lines tell of 6 failures:\n%s", n, read(t, s.log))
	}
	write(t, file, conf)
	old, err := os.FindProcess(s.pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	s.says("upgrade: the new process serves", 1)
	s.serves(regexp.MustCompile(`new_pid=(\d+)`).FindStringSubmatch(read(t, s.log))[1])
	s.says("msg=drained", 1)
	if status, _, body := fetch("GET", "http://"+s.admin+"/ready", ""); status != 200 {
		t.Errorf("/ready of the new process: %d %s", status, body)
	}
	if out, err := exec.Command("kill", "-0", strconv.Itoa(s.pid)).CombinedOutput(); err != nil {
		t.Errorf("the new process: %v %s", err, out)
	}
}

// TestUpgradeHearsAllWorkers: the process before serves until the new one has heard all workers, one that hangs included.
// The first that is up would get all requests, and the others' caches none.
func TestUpgradeHearsAllWorkers(t *testing.T) {
	t.Parallel()
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/health":
			time.Sleep(700 * time.Millisecond)
		case "/v1/models":
			fmt.Fprint(w, `{"object":"list","data":[{"id":"sim","object":"model"}]}`)
		}
	}))
	t.Cleanup(late.Close)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hanging.Close)
	s := newSiteWith(t, "3", func(string) (server, tables string) {
		return "", fmt.Sprintf("[[pools.workers]]\nurl = %q\n[[pools.workers]]\nurl = %q\n", late.URL, hanging.URL)
	})
	s.says(`msg="worker up"`, 2)
	if code, text := s.upgrade(""); code != 0 {
		t.Fatal(code, text)
	}
	resp, err := http.Get("http://" + s.admin + "/api/v1/pools")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var pools []operator.PoolState
	if err := json.NewDecoder(resp.Body).Decode(&pools); err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, w := range pools[0].Workers {
		states = append(states, w.State)
	}
	if got := strings.Join(states, " "); got != "up up down" {
		t.Errorf("right after the upgrade the workers are %s", got)
	}
}
