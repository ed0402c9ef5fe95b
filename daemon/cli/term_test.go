package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// silent accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	return "http://" + porttest.Serve(t, func(c *net.TCPConn) { t.Cleanup(func() { c.Close() }) })
}

// TestTermDuringAReload: a reload that waits for its new workers, and others queued behind it, neither cut a stream nor
// keep the process from ending.
func TestTermDuringAReload(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 300 * time.Millisecond, 2 * time.Second} {
		t.Run(after.String(), func(t *testing.T) { t.Parallel(); termDuringAReload(t, after) })
	}
}

func termDuringAReload(t *testing.T, after time.Duration) {
	port := porttest.Row(t, 3)
	dir := workplace(t)
	warmpath(t, dir, fmt.Sprintf("sim --listen 127.0.0.1:%d --speed 1", port))
	file := filepath.Join(dir, "a.toml")
	head := fmt.Sprintf("[server]\nlisten = \"127.0.0.1:%d\"\nadmin = \"127.0.0.1:%d\"\n", port+1, port+2)
	pool := func(name, url string) string {
		return fmt.Sprintf("[[pools]]\nname = %q\nmodels = [%q]\n[[pools.workers]]\nurl = %q\n", name, name, url)
	}
	first := pool("sim", fmt.Sprintf("http://127.0.0.1:%d", port))
	write(t, file, head+first)
	p := warmpath(t, dir, "serve --config a.toml")
	p.says(`msg="worker up"`, 1)
	url := fmt.Sprintf("http://127.0.0.1:%d", port+1)
	p.eventually("it serves the model", func() bool {
		status, _, _ := fetch("POST", url+"/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`)
		return status == 200
	})
	resp, err := http.Post(url+"/v1/completions", "application/json",
		strings.NewReader(`{"model":"sim","prompt":"x","max_tokens":150,"stream":true,"ignore_eos":true}`))
	if err != nil {
		t.Fatal(err)
	}
	stream := bufio.NewReader(resp.Body)
	if _, err := stream.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	write(t, file, head+first+pool("late", silent(t)))
	p.signal(syscall.SIGHUP)
	time.Sleep(50 * time.Millisecond)
	p.signal(syscall.SIGHUP) // waits for the first
	time.Sleep(after)
	p.signal(syscall.SIGTERM)
	rest, err := io.ReadAll(stream)
	resp.Body.Close()
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("SIGTERM %v into a reload: the stream ended with %.200q, %v", after, rest[max(0, len(rest)-200):], err)
	}
	p.succeed()
	out := p.String()
	if strings.Contains(out, "panic") || strings.Contains(out, "BUG") {
		t.Errorf("SIGTERM %v into a reload:\n%s", after, out)
	}
	if at := strings.Index(out, "msg=reloaded"); at >= 0 && at < strings.Index(out, "msg=draining") {
		t.Errorf("the reload had ended %v after it began: it was to last for longer", after)
	}
}

// TestTermDuringAnUpgrade: who stops the process while the new one starts stops both. The new one took the place of a
// process that had ended, as after a crash.
func TestTermDuringAnUpgrade(t *testing.T) {
	t.Parallel()
	port := porttest.Row(t, 2)
	dir := workplace(t)
	write(t, filepath.Join(dir, "a.toml"), fmt.Sprintf("[server]\nlisten = \"127.0.0.1:%d\"\nadmin = \"127.0.0.1:%d\"\n"+
		"[[pools]]\n[[pools.workers]]\nurl = %q\n", port, port+1, silent(t))) // the new one waits 15 s for this worker
	p := warmpath(t, dir, "serve --config a.toml")
	p.says("msg=serving", 1)
	p.signal(syscall.SIGUSR2)
	p.says(`msg="worker registered"`, 2)
	p.signal(syscall.SIGTERM)
	p.succeed()
	if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		c.Close()
		t.Errorf("somebody listens still:\n%s", p)
	}
}

// TestHangupDuringTheStart: a SIGHUP that comes while the daemon looks for its workers does not end it, and the file is
// read again once it serves.
func TestHangupDuringTheStart(t *testing.T) {
	t.Parallel()
	port := porttest.Row(t, 2)
	dir := workplace(t)
	write(t, filepath.Join(dir, "a.toml"), fmt.Sprintf("[server]\nlisten = \"127.0.0.1:%d\"\nadmin = \"127.0.0.1:%d\"\n"+
		"state_file = \"state\"\n[[pools]]\n[pools.kubernetes]\nservice = \"vllm\"\nnamespace = \"x\"\napi = %q\n",
		port, port+1, silent(t)))
	p := warmpath(t, dir, "serve --config a.toml")
	p.says("state file", 1)
	p.signal(syscall.SIGHUP)
	p.says("msg=serving", 1)
	p.says("msg=reloaded", 1)
	p.stop()
}
