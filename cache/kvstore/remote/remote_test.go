package remote

import (
	"crypto/tls"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

var sizes = []int{0, 1, 28, 4096, 1 << 20, 5 << 20}

// TestKinds: a second daemon finds the values of the first and reads the same bytes; deleted values are gone; values
// end at their time.
func TestKinds(t *testing.T) {
	t.Parallel()
	f := func(name string, c func(t *testing.T) Config) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := c(t)
			conf.Memory = true
			conf.Timeout = 5 * time.Second // no server fails here, not even on a slow machine
			a, b := startDaemon(t, conf), startDaemon(t, conf)
			waittest.Until(t, "the servers are known", func() bool {
				return a.remote.servers.up("k") && b.remote.servers.up("k")
			})
			check(t, a, b)
		})
	}
	f("single", func(t *testing.T) Config {
		return Config{Redis: &Redis{URL: "redis://" + startRedis(t).Addr + "/3", Prefix: "p:"}}
	})
	f("password", func(t *testing.T) Config {
		r := startRedis(t, "--requirepass", "s3cret/:@")
		return Config{Redis: &Redis{URL: "redis://:s3cret%2F%3A%40@" + r.Addr, Prefix: "p:"}}
	})
	f("user", func(t *testing.T) Config {
		r := startRedis(t, "--user", "me", "on", ">pw", "~*", "&*", "+@all", "--user", "default", "off")
		return Config{Redis: &Redis{URL: "redis://me:pw@" + r.Addr, Prefix: "p:"}}
	})
	f("tls", func(t *testing.T) Config {
		pair := certtest.New(t, t.TempDir(), "redis", "redis")
		port := strconv.Itoa(porttest.Row(t, 1))
		r := startRedisAt(t, "127.0.0.1:"+port, "--tls-cert-file", pair.Cert, "--tls-key-file", pair.Key,
			"--tls-ca-cert-file", pair.Cert, "--tls-auth-clients", "no", "--tls-port", port, "--port", "0")
		return Config{Redis: &Redis{URL: "rediss://" + r.Addr, Prefix: "p:", TLS: &tls.Config{RootCAs: pair.Authority}}}
	})
	f("sentinel", func(t *testing.T) Config {
		url, _, _ := redistest.Sentinels(t)
		return Config{Redis: &Redis{URL: url, Prefix: "p:"}}
	})
	f("cluster", func(t *testing.T) Config {
		url, _ := redistest.Cluster(t)
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
		waittest.Until(t, "the other daemon knows "+key, func() bool { return b.exists(key) })
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
	waittest.Until(t, "the servers know of the deletion", func() bool { b.forget("size1"); return !b.get("size1", 1) })
	a.putFor("short", 100, 300*time.Millisecond)
	a.written()
	waittest.Until(t, "a value ends", func() bool { return !a.exists("short") && !b.get("short", 100) })
	if n := a.remote.Stats(); n.PutErrors+n.GetErrors+n.Skipped+n.Crowded != 0 {
		t.Errorf("%+v", n)
	}
}

// TestNotKnown: a daemon that starts later gets the fact of a value from the first Exists, which misses it, or from a
// Get, which does not.
func TestNotKnown(t *testing.T) {
	r := startRedis(t)
	a := overRedis(t, "redis://"+r.Addr)
	a.put("k", 1000)
	a.put("j", 1000)
	a.written()
	b := overRedis(t, "redis://"+r.Addr)
	if b.exists("k") {
		t.Error("it knew")
	}
	waittest.Until(t, "it asked in the background", func() bool { return b.exists("k") })
	if !b.get("j", 1000) {
		t.Error("a Get does not ask")
	}
}

// TestMemoryOff: memory keeps no value that the servers have, and every value that they lack.
func TestMemoryOff(t *testing.T) {
	r := startRedis(t)
	d := startDaemon(t, Config{Redis: &Redis{URL: "redis://" + r.Addr}})
	d.put("k", 1<<20)
	d.written()
	waittest.Until(t, "memory is empty", func() bool { return d.store.Stats().Entries == 0 })
	for range 2 {
		if !d.exists("k") || !d.get("k", 1<<20) {
			t.Error("it is no hit")
		}
	}
	if n := d.store.Stats(); n.Entries != 0 || n.FromFar != 2 || n.ReservedBytes != 0 {
		t.Errorf("%+v", n)
	}
	r.Kill()
	waittest.Until(t, "the server is down", func() bool { return !d.remote.servers.up("k") })
	d.put("l", 1000)
	if !d.get("l", 1000) || !d.exists("l") {
		t.Error("what no server has was not kept")
	}
	if d.exists("k") || d.get("k", 1<<20) {
		t.Error("a value of a dead server is there")
	}
}

// TestPromote: the values from the servers that memory keeps.
func TestPromote(t *testing.T) {
	r := startRedis(t)
	f := func(p Promote, want ...int) {
		t.Helper()
		d := startDaemon(t, Config{Memory: true, Promote: p, Redis: &Redis{URL: "redis://" + r.Addr, Prefix: string(p)}})
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
	t.Parallel()
	r := startRedis(t)
	d := startDaemon(t, Config{Memory: true, Through: true, Redis: &Redis{URL: "redis://" + r.Addr}})
	for i := range 20 {
		key := fmt.Sprint("k", i)
		d.put(key, 1<<20)
		if n, err := r.bare.StrLen(t.Context(), key).Result(); n != 1<<20 || err != nil {
			t.Fatal(n, err)
		}
	}
}

// TestQueueIsBounded: a value without room in the queue is not written, and stays in memory.
func TestQueueIsBounded(t *testing.T) {
	r := startRedis(t)
	d := startDaemon(t, Config{Memory: true, Queue: 4 << 20, Timeout: 5 * time.Second, Redis: &Redis{URL: "redis://" + r.Addr}})
	d.put("first", 1000)
	d.written()
	r.Signal(stop)
	defer r.Signal(cont)
	for i := range 20 {
		d.put(fmt.Sprint("k", i), 1<<20)
	}
	if n := d.remote.Stats(); n.Queued > 4<<20 || n.Crowded == 0 || n.Skipped != 0 {
		t.Errorf("%d bytes wait, %d values found the queue full, %d were skipped", n.Queued, n.Crowded, n.Skipped)
	}
	for i := range 20 {
		if !d.get(fmt.Sprint("k", i), 1<<20) {
			t.Error("memory has lost it")
		}
	}
}

// TestCheck: a check finds the values that a Redis has evicted or deleted, and is no use of the others. Keys whose
// server does not answer keep their facts.
func TestCheck(t *testing.T) {
	t.Parallel()
	r := startRedis(t, "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lfu")
	d := startDaemon(t, Config{Memory: true, Redis: &Redis{URL: "redis://" + r.Addr, Prefix: "p:"}})
	for _, key := range []string{"kept", "lost"} {
		d.put(key, 1000)
	}
	d.written()
	d.forget("kept")
	d.forget("lost")
	r.do("DEL", "p:lost")
	used := r.bare.Do(t.Context(), "OBJECT", "FREQ", "p:kept").Val()
	if !d.exists("lost") {
		t.Fatal("the daemon knows of the loss before it has asked")
	}
	d.remote.Check(t.Context(), []string{"kept", "lost", "never there"})
	if d.exists("lost") || !d.exists("kept") {
		t.Errorf("after a check the lost value is there: %v, the other: %v", d.exists("lost"), d.exists("kept"))
	}
	if now := r.bare.Do(t.Context(), "OBJECT", "FREQ", "p:kept").Val(); now != used {
		t.Errorf("the frequency of use is %v; want %v as before", now, used)
	}
	r.Signal(stop)
	d.remote.Check(t.Context(), []string{"kept"})
	r.Signal(cont)
	waittest.Until(t, "the value is there after an outage", func() bool { return d.exists("kept") })
}

// TestCheckAndPut: the answer to a query does not mark a value as lost that was put while the query was under way, be
// it a check's, an EXISTS's or a GET's.
func TestCheckAndPut(t *testing.T) {
	for name, tell := range map[string]func(*index, mark, time.Time){"lose": (*index).lose, "miss": (*index).miss} {
		x := newIndex()
		asked := time.Now()
		x.facts.Put(1, fact{size: 1, at: asked.UnixNano() - 1})
		x.facts.Put(2, fact{size: 1, at: asked.UnixNano()})
		for m := range mark(3) {
			tell(x, m+1, asked)
		}
		if _, known := x.find(1, now()); known {
			t.Errorf("%s: what was known before is known still", name)
		}
		if _, known := x.find(2, now()); !known || x.missed(2, asked) {
			t.Errorf("%s: what was put meanwhile is forgotten", name)
		}
		if x.missed(3, asked) != (name == "miss") {
			t.Errorf("%s: of what was not known it is noted that it is missing: %v", name, x.missed(3, asked))
		}
	}
}

// TestUnderWay: a key is under way until all its jobs are done, and another key is not.
func TestUnderWay(t *testing.T) {
	q := newQueue(1000)
	jobs := []*job{{key: "k", size: 1}, {key: "k", remove: true}}
	for _, j := range jobs {
		if q.has("k") != (j.remove) || !q.push(j) || !q.has("k") || q.has("other") {
			t.Fatalf("pushed %+v: k is under way: %v, another: %v", j, q.has("k"), q.has("other"))
		}
	}
	q.done(jobs[0])
	if !q.has("k") {
		t.Error("after one of two k is not under way")
	}
	q.done(jobs[1])
	if q.has("k") || len(q.jobs) != 0 {
		t.Error("k is under way when all is done")
	}
}

func now() time.Time { return time.Now() }

// TestEndOf: PTTL is 0 in the last millisecond of a value. Taken for no end, the value would stay for ever.
func TestEndOf(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	f := func(life time.Duration, want int64, there bool) {
		t.Helper()
		if ends, ok := endOf(life, now); ends != want || ok != there {
			t.Errorf("%v: %d %v; want %d %v", life, ends, ok, want, there)
		}
	}
	f(-2, 0, false)
	f(-1, 0, true)
	f(0, 1_000_000, true)
	f(300*time.Millisecond, 1_000_300, true)
}
