package tier

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
)

// server is a redis-server of the test's own, on a unix socket.
type server struct {
	*redistest.Server
	t    testing.TB
	bare *redis.Client // straight to it, with time
}

func startRedis(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{Server: redistest.New(t, args...), t: t}
	s.bare = redis.NewClient(&redis.Options{Network: "unix", Addr: s.Socket(), MaxRetries: -1, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { s.bare.Close() })
	s.Start()
	return s
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

func isOpen(s *Store) bool { return s.Stats().L2.Open }
