package remote

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// redisServer is a redis-server of the test's own at a port, and a client straight to it.
type redisServer struct {
	*redistest.Server
	t    testing.TB
	bare *redis.Client
}

func startRedis(t testing.TB, args ...string) *redisServer {
	t.Helper()
	return startRedisAt(t, porttest.Address(t), args...)
}

func startRedisAt(t testing.TB, addr string, args ...string) *redisServer {
	t.Helper()
	_, port, _ := net.SplitHostPort(addr)
	s := &redisServer{t: t, bare: bareClient(t, addr)}
	s.Server = redistest.New(t, append([]string{"--bind", "127.0.0.1", "--port", port, "--appendonly", "no"}, args...)...)
	s.Addr = addr
	s.start()
	return s
}

// bareClient goes straight to a server.
func bareClient(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { c.Close() })
	return c
}

// start starts the server and returns when it answers, even one that requires a password.
func (s *redisServer) start() {
	s.t.Helper()
	s.Launch()
	waittest.Until(s.t, "redis-server listens", func() bool {
		c, err := net.Dial("tcp", s.Addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (s *redisServer) do(args ...any) {
	s.t.Helper()
	if err := s.bare.Do(context.Background(), args...).Err(); err != nil {
		s.t.Fatal(args[0], err)
	}
}

// daemon is a store over a Remote.
type daemon struct {
	t      testing.TB
	store  *kvstore.Store
	remote *Remote
}

var quietLog = slog.New(slog.DiscardHandler)

// startDaemon starts a daemon with memory for 64 MiB. c changes the defaults.
func startDaemon(t testing.TB, c Config) *daemon {
	t.Helper()
	if c.Log == nil {
		c.Log = quietLog
	}
	r, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := kvstore.Open(kvstore.Config{MaxBytes: 64 << 20, Far: r, Log: quietLog})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := s.Close(5 * time.Second); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return &daemon{t: t, store: s, remote: r}
}

// overRedis starts a daemon over a Redis, with memory's own copies.
func overRedis(t testing.TB, url string) *daemon {
	return startDaemon(t, Config{Memory: true, Redis: &Redis{URL: url, Prefix: "p:"}})
}

// valueOf returns a value that no other key has.
func valueOf(key string, size int) []byte {
	return bytes.Repeat([]byte(key+"|"), size/(len(key)+1)+1)[:size]
}

func (d *daemon) put(key string, size int) {
	d.t.Helper()
	d.putFor(key, size, 0)
}

func (d *daemon) putFor(key string, size int, life time.Duration) {
	d.t.Helper()
	f, err := d.store.Reserve(key, int64(size))
	if err != nil {
		d.t.Fatal(err)
	}
	rest := valueOf(key, size)
	for _, p := range f.Pieces() {
		rest = rest[copy(p, rest):]
	}
	f.Commit(kvstore.Terms{Life: life})
}

// get reports whether there is a value, and fails the test if its bytes are not those that were put.
func (d *daemon) get(key string, size int) bool {
	d.t.Helper()
	l := d.store.Get(context.Background(), key, netip.Addr{})
	if l == nil {
		return false
	}
	defer l.Release()
	if got := bytes.Join(l.Pieces(), nil); !bytes.Equal(got, valueOf(key, size)) {
		d.t.Errorf("%s has %d other bytes; want %d", key, len(got), size)
	}
	return true
}

func (d *daemon) exists(key string) bool { return d.store.Exists(key, netip.Addr{}, 0) }

// written waits until the servers have all values.
func (d *daemon) written() {
	d.t.Helper()
	waittest.Until(d.t, "the queue is written", func() bool { return d.remote.Stats().Queued == 0 })
}

// forget deletes a key in memory only.
func (d *daemon) forget(key string) { kvstore.NewView(d.store, kvstore.Here).Delete(key) }
