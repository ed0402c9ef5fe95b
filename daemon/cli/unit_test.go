package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// kept holds sockets that a test keeps open for processes, as systemd does.
type kept struct {
	client, admin string // their URLs
	files         []*os.File
}

// keepSockets opens listening sockets. Only the processes that get the files accept.
func keepSockets(t *testing.T) *kept {
	t.Helper()
	k := &kept{}
	for _, url := range []*string{&k.client, &k.admin} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		t.Cleanup(func() { f.Close() })
		*url = "http://" + l.Addr().String()
		k.files = append(k.files, f)
	}
	return k
}

// serve starts a daemon on the sockets. The daemon has the pid of the shell.
func (k *kept) serve(t *testing.T, dir, env string) *process {
	t.Helper()
	return launchWith(t, dir, "LISTEN_PID=$$ LISTEN_FDS=2 "+env+" bin/warmpath serve --config a.toml",
		func(p *process) { p.cmd.ExtraFiles = k.files }, "XDG_CACHE_HOME="+filepath.Join(built, "cache"))
}

// simulated starts a simulated worker, and writes a configuration with it and without a usable address to listen on.
func simulated(t *testing.T, dir, server string) {
	t.Helper()
	worker := fmt.Sprintf("127.0.0.1:%d", porttest.Row(t, 1))
	warmpath(t, dir, "sim --listen "+worker+" --speed 1000")
	write(t, filepath.Join(dir, "a.toml"), fmt.Sprintf("[server]\nlisten = \"127.0.0.1:1\"\nadmin = \"127.0.0.1:2\"\n%s"+
		"[[pools]]\n[[pools.workers]]\nurl = \"http://%s\"\n", server, worker))
}

// TestServesOnGivenSockets: the sockets that a process is started with replace server.listen and server.admin, in the
// order of their names, and the process sends its states to NOTIFY_SOCKET.
func TestServesOnGivenSockets(t *testing.T) {
	t.Parallel()
	dir := workplace(t)
	simulated(t, dir, "")
	notify := filepath.Join(dir, "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	told := func(want string) {
		t.Helper()
		manager.SetReadDeadline(time.Now().Add(time.Minute))
		b := make([]byte, 1000)
		if n, err := manager.Read(b); err != nil || !strings.HasPrefix(string(b[:n]), want) {
			t.Fatalf("the manager is told %q, %v; want %q", b[:n], err, want)
		}
	}
	k := keepSockets(t)
	k.files[0], k.files[1] = k.files[1], k.files[0]
	p := k.serve(t, dir, "LISTEN_FDNAMES=admin:client NOTIFY_SOCKET="+notify)
	told("READY=1\nSTATUS=serving clients at " + strings.TrimPrefix(k.client, "http://"))
	if status, _, body := fetch("POST", k.client+"/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`); status != 200 {
		t.Errorf("a request after READY=1: %d %s", status, body)
	}
	if status, _, body := fetch("GET", k.admin+"/ready", ""); status != 200 {
		t.Errorf("/ready of the operator's socket after READY=1: %d %s", status, body)
	}
	if log := p.String(); strings.Count(log, "unused_listen=127.0.0.1:1 ") != 1 || !strings.Contains(log, "unused_admin=127.0.0.1:2") {
		t.Errorf("no line, or several, on the addresses of the configuration that are not used:\n%s", log)
	}
	p.signal(syscall.SIGHUP)
	told("RELOADING=1\nMONOTONIC_USEC=")
	told("READY=1\nSTATUS=serving; reloaded")
	p.signal(syscall.SIGTERM)
	told("STOPPING=1\nSTATUS=draining")
	p.succeed()
}

// TestRestartOnKeptSockets: while the sockets stay open, one process after the other serves on them, and no client is
// refused.
func TestRestartOnKeptSockets(t *testing.T) {
	t.Parallel()
	const restarts = 3
	dir := workplace(t)
	simulated(t, dir, "drain_delay = \"500ms\"\n")
	k := keepSockets(t)
	p := k.serve(t, dir, "")
	c := newCrowd(t, k.client, 8)
	for range restarts {
		was := c.answers.Load()
		p.eventually("the crowd is served", func() bool { return c.answers.Load() > was+50 })
		p.stop()
		p = k.serve(t, dir, "")
	}
	was := c.answers.Load()
	p.eventually("the crowd is served", func() bool { return c.answers.Load() > was+50 })
	c.end()
	p.stop()
	if len(c.failed) > 0 {
		t.Errorf("%d requests failed beside %d that were answered: %.300q", len(c.failed), c.answers.Load(), c.failed)
	}
}

// TestOpenAdminSocketNeedsToken: a socket from outside does not evade the rule of server.admin.
func TestOpenAdminSocketNeedsToken(t *testing.T) {
	dir := workplace(t)
	simulated(t, dir, "")
	k := keepSockets(t)
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	k.files[1] = f
	if p := k.serve(t, dir, ""); p.end() != 1 || !strings.Contains(p.String(), "set server.admin_token_file") {
		t.Errorf("an operator's socket on all interfaces without a token:\n%s", p)
	}
}
