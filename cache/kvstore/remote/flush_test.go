package remote

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// TestFlush: a daemon that has just started deletes the values of another one, counts them, and leaves the rest alone.
func TestFlush(t *testing.T) {
	t.Parallel()
	f := func(name string, servers func(t *testing.T) string) {
		t.Run(name, func(t *testing.T) {
			url := servers(t)
			conf := func(prefix string) Config {
				return Config{Memory: true, Timeout: 5 * time.Second, Redis: &Redis{URL: url, Prefix: prefix}}
			}
			a, other := startDaemon(t, conf("p[*:")), startDaemon(t, conf("p[x:"))
			waittest.Until(t, "the servers are known", func() bool {
				return a.remote.servers.up("k") && other.remote.servers.up("k")
			})
			for i := range 50 {
				a.put(fmt.Sprint("k", i), 100)
				a.put(fmt.Sprint("j", i), 100)
			}
			other.put("k0", 100)
			a.written()
			other.written()
			waittest.Until(t, "the first daemon has read the mark", func() bool {
				return a.remote.servers.client.Exists(t.Context(), "p[*:"+markKey).Val() == 1
			})
			b := startDaemon(t, conf("p[*:"))
			waittest.Until(t, "the servers are known", func() bool { return b.remote.servers.up("k") })
			for _, x := range []struct {
				prefix string
				want   int64
			}{{"k1", 11}, {"k*", 0}, {"", 89}, {"", 0}} {
				if n, err := b.remote.Flush(t.Context(), x.prefix); n != x.want || err != nil {
					t.Errorf("Flush(%q) = %d, %v; want %d", x.prefix, n, err, x.want)
				}
			}
			if b.get("k0", 100) || b.get("j0", 100) {
				t.Error("what was flushed is there")
			}
			waittest.Until(t, "the other daemon forgets what it knew", func() bool { return !a.remote.Exists("k0", time.Time{}) })
			if !other.get("k0", 100) || !other.remote.Exists("k0", time.Time{}) {
				t.Error("keys of another prefix are gone")
			}
		})
	}
	f("single", func(t *testing.T) string { return "redis://" + startRedis(t).Addr })
	f("cluster", func(t *testing.T) string { url, _ := redistest.Cluster(t); return url })
}

// TestFlushOfOwn: a deletion that is still on its way to the server counts once; a server that is down is an error.
func TestFlushOfOwn(t *testing.T) {
	r := startRedis(t)
	a := overRedis(t, "redis://"+r.Addr)
	a.put("k", 100)
	a.written()
	a.remote.mu.Lock()
	a.remote.gone["k"] = 1 << 62
	a.remote.mu.Unlock()
	if n, err := a.remote.Flush(t.Context(), ""); n != 0 || err != nil {
		t.Errorf("Flush = %d, %v; want nothing", n, err)
	}
	if n := r.bare.Exists(context.Background(), "k").Val(); n != 0 {
		t.Error("what was deleted here is there")
	}
	r.Kill()
	if n, err := a.remote.Flush(t.Context(), ""); n != 0 || err == nil {
		t.Errorf("Flush of a server that is down = %d, %v", n, err)
	}
}

// TestFlushTellsOthers: the other daemons of a Redis forget what a flush deleted, even if the flushing daemon knew all
// of it, and had deleted it before it asked the Redis.
func TestFlushTellsOthers(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a, b := overRedis(t, "redis://"+r.Addr), overRedis(t, "redis://"+r.Addr)
	waittest.Until(t, "a daemon has made the mark", func() bool {
		return r.bare.Exists(t.Context(), "p:"+markKey).Val() == 1
	})
	time.Sleep(2 * markEvery * tendEvery) // and both have read it
	a.put("k", 100)
	waittest.Until(t, "the other daemon knows the key", func() bool { return b.remote.Exists("k", time.Time{}) })
	a.remote.Delete("k")
	waittest.Until(t, "the server has deleted it", func() bool { return r.bare.Exists(t.Context(), "p:k").Val() == 0 })
	if n, err := a.remote.Flush(t.Context(), "k"); n != 0 || err != nil {
		t.Errorf("Flush = %d, %v; want nothing", n, err)
	}
	waittest.Until(t, "the other daemon forgets it", func() bool { return !b.remote.Exists("k", time.Time{}) })
}
