package tier

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a redis-server of the test's own, on a unix socket.
type server struct {
	t    testing.TB
	dir  string
	args []string
	cmd  *exec.Cmd
	bare *redis.Client // straight to it, with time
}

// startRedis skips without a redis-server, but not in CI, where that would hide everything.
func startRedis(t testing.TB, args ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no redis-server: apt-get install redis-server")
		}
		t.Skip("SKIPPED: there is no redis-server, so nothing of Redis is tested here; apt-get install redis-server")
	}
	dir, err := os.MkdirTemp("", "tier") // not t.TempDir: a socket's path may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, dir: dir, args: args}
	s.bare = redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket(), MaxRetries: -1, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() {
		s.bare.Close()
		s.kill()
		os.RemoveAll(dir)
	})
	s.start()
	return s
}

func (s *server) socket() string { return filepath.Join(s.dir, "r.sock") }
func (s *server) url() string    { return "unix://" + s.socket() }

func (s *server) start() {
	s.t.Helper()
	s.launch()
	eventually(s.t, "redis-server answers", func() bool { return s.bare.Ping(context.Background()).Err() == nil })
}

func (s *server) launch() {
	s.t.Helper()
	args := append([]string{"--port", "0", "--unixsocket", s.socket(), "--dir", s.dir, "--save", "", "--daemonize", "no"}, s.args...)
	s.cmd = exec.Command("redis-server", args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// eventually waits up to 20 s.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// logged collects log lines.
type logged struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(b))
	return len(b), nil
}

func (l *logged) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// patient is a time limit under which a loaded machine does not fail by itself; tests of the limit itself use the default.
const patient = 2 * time.Second

// notRun makes a store that nobody heals.
func notRun(t testing.TB, conf Config) *Store {
	t.Helper()
	conf.Log = slog.New(slog.DiscardHandler)
	s, err := New(conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// open makes a store and runs it until the test's end.
func open(t testing.TB, conf Config) (*Store, *logged) {
	t.Helper()
	lines := &logged{}
	conf.Log = slog.New(slog.NewTextHandler(lines, nil))
	s, err := New(conf)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		s.Close()
	})
	return s, lines
}

func want(t testing.TB, s *Store, key, value string) {
	t.Helper()
	if v, ok := s.Get("ns", key); !ok || string(v) != value {
		t.Errorf("Get(%q) = %q, %v; want %q", key, v, ok, value)
	}
}

func wantNone(t testing.TB, s *Store, key string) {
	t.Helper()
	if v, ok := s.Get("ns", key); ok {
		t.Errorf("Get(%q) = %q; want none", key, v)
	}
}
