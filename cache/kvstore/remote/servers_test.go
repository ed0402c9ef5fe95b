package remote

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// redisServer is a redis-server of the test's own at a port: sentinels and clusters cannot use Unix sockets.
type redisServer struct {
	*redistest.Server
	t    testing.TB
	addr string
	bare *redis.Client
}

func startRedis(t testing.TB, args ...string) *redisServer {
	t.Helper()
	return startRedisAt(t, porttest.Address(t), args...)
}

func startRedisAt(t testing.TB, addr string, args ...string) *redisServer {
	t.Helper()
	_, port, _ := net.SplitHostPort(addr)
	s := &redisServer{t: t, addr: addr}
	s.Server = redistest.New(t, append([]string{"--bind", "127.0.0.1", "--port", port, "--appendonly", "no"}, args...)...)
	s.bare = redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { s.bare.Close() })
	s.start()
	return s
}

func (s *redisServer) port() string {
	_, port, _ := net.SplitHostPort(s.addr)
	return port
}

// start starts the server and returns when it answers, even one that requires a password.
func (s *redisServer) start() {
	s.t.Helper()
	s.Launch()
	waittest.Until(s.t, "redis-server listens", func() bool {
		c, err := net.Dial("tcp", s.addr)
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

// startSentinel starts a sentinel of a master and a replica, which begins a failover after a second.
func startSentinel(t testing.TB) (url string, master, replica *redisServer) {
	t.Helper()
	master = startRedis(t)
	replica = startRedis(t, "--replicaof", "127.0.0.1 "+master.port())
	waittest.Until(t, "the replica follows", func() bool {
		s, err := replica.bare.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(s, "master_link_status:up")
	})
	addr := porttest.Address(t)
	_, port, _ := net.SplitHostPort(addr)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor m 127.0.0.1 %s 1\n"+
		"sentinel down-after-milliseconds m 1000\nsentinel failover-timeout m 5000\n", port, master.port())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redis-server", file, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	waittest.Until(t, "the sentinel knows the replica", func() bool {
		list, err := redis.NewSentinelClient(&redis.Options{Addr: addr}).Replicas(t.Context(), "m").Result()
		return err == nil && len(list) == 1
	})
	return "redis://" + addr + "/0?master_name=m", master, replica
}

// startCluster starts three masters.
func startCluster(t testing.TB) (url string, nodes []*redisServer) {
	t.Helper()
	args := []string{"--cluster", "create"}
	for range 3 {
		n := startRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
			"--cluster-port", strconv.Itoa(porttest.Row(t, 1))) // else 10,000 above the other port, among those of connections
		nodes = append(nodes, n)
		args = append(args, n.addr)
	}
	out, err := exec.Command("redis-cli", append(args, "--cluster-yes")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	waittest.Until(t, "the cluster is up", func() bool {
		for _, n := range nodes {
			if s, err := n.bare.ClusterInfo(t.Context()).Result(); err != nil || !strings.Contains(s, "cluster_state:ok") {
				return false
			}
		}
		return true
	})
	return "redis://" + nodes[0].addr + "?cluster=true&addr=" + nodes[1].addr, nodes
}
