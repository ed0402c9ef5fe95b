// Package redistest runs redis-servers for tests.
package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a server may take to start, or to answer a command.
const patience = 20 * time.Second

// Server is a redis-server on a socket of its own, which writes nothing to disk. It can be ended and started again.
type Server struct {
	Addr string // HOST:PORT, if it has a port of its own

	t    testing.TB
	dir  string
	args []string
	cmd  *exec.Cmd // nil = it does not run
}

// New returns a Server that does not run yet, and ends with the test. args are added to its command line. Without a
// redis-server on this machine the test is skipped, but not in CI, where that would hide everything.
func New(t testing.TB, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no redis-server: apt-get install redis-server")
		}
		t.Skip("SKIPPED: there is no redis-server, so nothing of Redis is tested here; apt-get install redis-server")
	}
	dir, err := os.MkdirTemp("", "redis") // not t.TempDir: a socket's path may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, dir: dir, args: args}
	t.Cleanup(func() {
		s.Kill()
		os.RemoveAll(dir)
	})
	return s
}

// Start makes a Server with New, and starts it.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := New(t, args...)
	s.Start()
	return s
}

// Socket is the path of the server's socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "r.sock") }

// URL returns the server's URL, for a configuration.
func (s *Server) URL() string { return "unix://" + s.Socket() }

// Launch starts the server, and does not wait until it answers.
func (s *Server) Launch() {
	s.t.Helper()
	args := append([]string{"--port", "0", "--unixsocket", s.Socket(), "--dir", s.dir, "--save", ""}, s.args...)
	s.cmd = exec.Command("redis-server", args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// Start starts the server and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.Launch()
	for end := time.Now().Add(patience); s.Try("PING") != "+PONG"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("redis-server does not answer within %v", patience)
		}
	}
}

// Kill ends the server, if it runs, as a crash would.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Signal sends the server a signal.
func (s *Server) Signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Try sends a command whose words have no spaces in them, and returns the first line of its reply; "" if there is none.
func (s *Server) Try(command string) string {
	c, err := net.DialTimeout("unix", s.Socket(), patience)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(c, "%s\r\n", command)
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line)
}

// Do sends a command as Try does, and fails the test if the server does not take it.
func (s *Server) Do(command string) {
	s.t.Helper()
	if got := s.Try(command); got == "" || got[0] == '-' {
		s.t.Fatalf("%s: %q", command, got)
	}
}
