package remote

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/conf/certtest"
)

var sizes = []int{0, 1, 28, 4096, 1 << 20, 5 << 20}

// TestKinds: what one daemon puts, another one knows of, and gets the same bytes; what it deletes is gone; values end at
// their time.
func TestKinds(t *testing.T) {
	f := func(name string, c func(t *testing.T) Config) {
		t.Run(name, func(t *testing.T) {
			conf := c(t)
			conf.Memory = true
			conf.Timeout = 5 * time.Second // nothing fails here, on a slow machine neither
			a, b := startDaemon(t, conf), startDaemon(t, conf)
			eventually(t, "the servers are known", func() bool {
				return a.remote.servers.up("k") && b.remote.servers.up("k")
			})
			check(t, a, b)
		})
	}
	f("single", func(t *testing.T) Config {
		return Config{Redis: &Redis{URL: "redis://" + startRedis(t).addr + "/3", Prefix: "p:"}}
	})
	f("password", func(t *testing.T) Config {
		r := startRedis(t, "--requirepass", "s3cret/:@")
		return Config{Redis: &Redis{URL: "redis://:s3cret%2F%3A%40@" + r.addr, Prefix: "p:"}}
	})
	f("user", func(t *testing.T) Config {
		r := startRedis(t, "--user", "me", "on", ">pw", "~*", "&*", "+@all", "--user", "default", "off")
		return Config{Redis: &Redis{URL: "redis://me:pw@" + r.addr, Prefix: "p:"}}
	})
	f("tls", func(t *testing.T) Config {
		pair := certtest.New(t, t.TempDir(), "redis", "redis")
		r := newRedis(t, "--tls-cert-file", pair.Cert, "--tls-key-file", pair.Key, "--tls-ca-cert-file", pair.Cert, "--tls-auth-clients", "no")
		r.args = append(r.args, "--tls-port", r.port(), "--port", "0")
		r.start()
		return Config{Redis: &Redis{URL: "rediss://" + r.addr, Prefix: "p:", TLS: &tls.Config{RootCAs: pair.Authority}}}
	})
	f("sentinel", func(t *testing.T) Config {
		url, _, _ := startSentinel(t)
		return Config{Redis: &Redis{URL: url, Prefix: "p:"}}
	})
	f("cluster", func(t *testing.T) Config {
		url, _ := startCluster(t)
		return Config{Redis: &Redis{URL: url, Prefix: "p:"}}
	})
}

func check(t *testing.T, a, b *daemon) {
	t.Helper()
	for _, size := range sizes {
		key := fmt.Sprint("size", size)
		if b.get(key, size) {
			t.Errorf("%s is there before it was put", key)
		}
		a.put(key, size)
	}
	a.written()
	for _, size := range sizes {
		key := fmt.Sprint("size", size)
		eventually(t, "the other daemon knows "+key, func() bool { return b.exists(key) })
		if !b.get(key, size) {
			t.Errorf("%s is no hit: %+v", key, b.remote.Stats())
		}
	}
	if n := b.store.Stats(); n.FromFar != uint64(len(sizes)) {
		t.Errorf("%d values came from the servers; want %d", n.FromFar, len(sizes))
	}
	a.store.Delete("size1")
	if a.exists("size1") || a.get("size1", 1) {
		t.Error("a deleted value is there")
	}
	eventually(t, "the servers know of the deletion", func() bool { b.forget("size1"); return !b.get("size1", 1) })
	a.putFor("short", 100, 300*time.Millisecond)
	a.written()
	eventually(t, "a value ends", func() bool { return !a.exists("short") && !b.get("short", 100) })
	if n := a.remote.Stats(); n.PutErrors+n.GetErrors+n.Skipped != 0 {
		t.Errorf("%+v", n)
	}
}

// TestNotKnown: a daemon that starts later learns of a value from the first Exists, which misses it, or from a Get, which
// does not.
func TestNotKnown(t *testing.T) {
	r := startRedis(t)
	a := overRedis(t, "redis://"+r.addr)
	a.put("k", 1000)
	a.put("j", 1000)
	a.written()
	b := overRedis(t, "redis://"+r.addr)
	if b.exists("k") {
		t.Error("it knew")
	}
	eventually(t, "it asked in the background", func() bool { return b.exists("k") })
	if !b.get("j", 1000) {
		t.Error("a Get does not ask")
	}
}

// TestMemoryOff: memory keeps nothing that the servers have, and everything that they have not.
func TestMemoryOff(t *testing.T) {
	r := startRedis(t)
	d := startDaemon(t, Config{Redis: &Redis{URL: "redis://" + r.addr}})
	d.put("k", 1<<20)
	d.written()
	eventually(t, "memory is empty", func() bool { return d.store.Stats().Entries == 0 })
	for range 2 {
		if !d.exists("k") || !d.get("k", 1<<20) {
			t.Error("it is no hit")
		}
	}
	if n := d.store.Stats(); n.Entries != 0 || n.FromFar != 2 || n.ReservedBytes != 0 {
		t.Errorf("%+v", n)
	}
	r.kill()
	eventually(t, "the server is down", func() bool { return !d.remote.servers.up("k") })
	d.put("l", 1000)
	if !d.get("l", 1000) || !d.exists("l") {
		t.Error("what no server has was not kept")
	}
	if d.exists("k") || d.get("k", 1<<20) {
		t.Error("a value of a dead server is there")
	}
}

// TestPromote: which of the values that came from the servers memory keeps.
func TestPromote(t *testing.T) {
	r := startRedis(t)
	f := func(p Promote, want ...int) {
		t.Helper()
		d := startDaemon(t, Config{Memory: true, Promote: p, Redis: &Redis{URL: "redis://" + r.addr, Prefix: string(p)}})
		d.put("k", 1000)
		d.written()
		d.forget("k")
		for i, n := range want {
			if !d.get("k", 1000) || d.store.Stats().Entries != n {
				t.Errorf("%s, get %d: %d values in memory; want %d", p, i, d.store.Stats().Entries, n)
			}
		}
	}
	f(Always, 1, 1)
	f(Never, 0, 0, 0)
	f(Second, 0, 1, 1)
}

// TestThrough: after a put the servers have the value.
func TestThrough(t *testing.T) {
	r := startRedis(t)
	d := startDaemon(t, Config{Memory: true, Through: true, Redis: &Redis{URL: "redis://" + r.addr}})
	for i := range 20 {
		key := fmt.Sprint("k", i)
		d.put(key, 1<<20)
		if n, err := r.bare.StrLen(t.Context(), key).Result(); n != 1<<20 || err != nil {
			t.Fatal(n, err)
		}
	}
}

// TestQueueIsBounded: what does not fit on the way is not written, and stays in memory.
func TestQueueIsBounded(t *testing.T) {
	r := startRedis(t)
	d := startDaemon(t, Config{Memory: true, Queue: 4 << 20, Timeout: 5 * time.Second, Redis: &Redis{URL: "redis://" + r.addr}})
	d.put("first", 1000)
	d.written()
	r.signal(stop)
	defer r.signal(cont)
	for i := range 20 {
		d.put(fmt.Sprint("k", i), 1<<20)
	}
	if n := d.remote.Stats(); n.Queued > 4<<20 || n.Skipped == 0 {
		t.Errorf("%d bytes wait, %d values skipped", n.Queued, n.Skipped)
	}
	for i := range 20 {
		if !d.get(fmt.Sprint("k", i), 1<<20) {
			t.Error("memory has lost it")
		}
	}
}

// TestURLs: what is no URL is refused, without a word of it.
func TestURLs(t *testing.T) {
	f := func(url string, want kind) {
		t.Helper()
		p, err := parseURL(url)
		if want == "" && err == nil || want != "" && (err != nil || p.kind != want) {
			t.Errorf("%s is %q, %v; want %q", url, p.kind, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("the error shows the URL: %v", err)
		}
	}
	f("redis://h:1/2", single)
	f("rediss://u:p@h:1", single)
	f("redis://u:p@h:1?master_name=m&addr=h:2", sentinel)
	f("redis://u:p@h:1?cluster=true&addr=h:2", cluster)
	f("rediss://h:1?cluster=1", cluster)
	f("http://hidden:1", "")
	f("redis://u:hidden@h:port", "")
	f("redis://u:hidden@h:1?wrong=1", "")
	f("redis://u:hidden@h:1/x", "")
	f("", "")
}

func now() time.Time { return time.Now() }
