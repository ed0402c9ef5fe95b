package remote

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

const (
	stop = syscall.SIGSTOP
	cont = syscall.SIGCONT
)

// record is a log that tests read.
type record struct{ logtest.Log }

// has reports whether a line has all these words.
func (r *record) has(words ...string) bool {
	for line := range strings.Lines(r.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			return true
		}
	}
	return false
}

// logged starts a daemon over a Redis, with its log.
func logged(t *testing.T, url string) (*daemon, *record) {
	r := &record{}
	return startDaemon(t, Config{Memory: true, Log: slog.New(slog.NewTextHandler(r, nil)),
		Redis: &Redis{URL: url, Prefix: "p:"}}), r
}

// traffic puts, looks up and gets in many goroutines until stop, and records the durations.
type traffic struct {
	d       *daemon
	end     chan struct{}
	working sync.WaitGroup

	mu            sync.Mutex // guards all below
	lookups, gets []time.Duration
}

const trafficKeys, trafficBytes = 40, 256 << 10

func startTraffic(d *daemon) *traffic {
	x := &traffic{d: d, end: make(chan struct{})}
	for i := range 4 {
		x.working.Go(func() {
			for n := i; ; n++ {
				if n%50 == 0 {
					x.d.put(fmt.Sprint("fresh", i, n), 100)
				}
				select {
				case <-x.end:
					return
				default:
					x.turn(fmt.Sprint("t", n%trafficKeys))
				}
			}
		})
	}
	return x
}

// turn does the work of a worker: a lookup, and a get or a put.
func (x *traffic) turn(key string) {
	start := time.Now()
	found := x.d.exists(key)
	looked := time.Since(start)
	start = time.Now()
	got := x.d.get(key, trafficBytes)
	took := time.Since(start)
	if !found && !got {
		x.d.put(key, trafficBytes)
	}
	x.d.forget(key) // so that the next get goes to the servers
	x.mu.Lock()
	x.lookups = append(x.lookups, looked)
	x.gets = append(x.gets, took)
	x.mu.Unlock()
	time.Sleep(time.Millisecond)
}

// stop returns the p99 of lookups and the longest get.
func (x *traffic) stop() (lookup, get time.Duration) {
	close(x.end)
	x.working.Wait()
	slices.Sort(x.lookups)
	return x.lookups[len(x.lookups)*99/100], slices.Max(x.gets)
}

// patience is the longest time for a get: a server's silence, and the delay of a busy machine.
const patience = 500*time.Millisecond + 2*time.Second

// TestFaults: under any fault of a Redis under load, lookups do not wait for it, gets wait no longer than for its
// silence, no get returns wrong bytes, the log explains the fault, and all is well when the Redis is.
func TestFaults(t *testing.T) {
	t.Parallel()
	f := func(name string, fault func(r *redisServer, d *daemon), during string, mend func(r *redisServer), after string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRedis(t)
			d, log := logged(t, "redis://"+r.Addr)
			waittest.Until(t, "the server answers", func() bool { return d.remote.servers.up("k") })
			x := startTraffic(d)
			waittest.Until(t, "values come from the server", func() bool { return d.store.Stats().FromFar > 50 })
			fault(r, d)
			waittest.Until(t, "the log has "+during, func() bool {
				if log.has(strings.Split(during, "&")...) {
					return true
				}
				if name == "flushed" { // a flush before the daemon's first look at the Redis does not count
					fault(r, d)
				}
				return false
			})
			time.Sleep(time.Second)
			mend(r)
			waittest.Until(t, "the log has "+after, func() bool { return log.has(strings.Split(after, "&")...) })
			before := d.store.Stats().FromFar
			waittest.Until(t, "values come from the server again", func() bool { return d.store.Stats().FromFar > before+50 })
			lookup, get := x.stop()
			t.Logf("lookups: p99 %s of %d; longest get %s; %+v", lookup, len(x.lookups), get, d.remote.Stats())
			if lookup > 300*time.Millisecond || get > patience {
				t.Errorf("p99 of lookups %s, longest get %s", lookup, get)
			}
		})
	}
	f("killed", func(r *redisServer, _ *daemon) { r.Kill() }, "does not answer&level=WARN&"+"server=",
		func(r *redisServer) { r.start() }, "is back&down_for=")
	f("stopped", func(r *redisServer, _ *daemon) { r.Signal(stop) }, "does not answer&timeout",
		func(r *redisServer) { r.Signal(cont) }, "is back&down_for=")
	f("flushed", func(r *redisServer, _ *daemon) { r.do("FLUSHALL") }, "was flushed", func(*redisServer) {}, "was flushed")
	f("full", func(r *redisServer, d *daemon) {
		r.do("CONFIG", "SET", "maxmemory", "1")
		d.store.Delete("t1")
		d.put("new", 10)
	},
		"takes no value&out of memory", func(r *redisServer) { r.do("CONFIG", "SET", "maxmemory", "0") }, "takes values again&was=oom")
	f("read-only", func(r *redisServer, d *daemon) {
		r.do("REPLICAOF", "127.0.0.1", "1")
		r.do("CONFIG", "SET", "replica-serve-stale-data", "yes")
		d.put("new", 10)
	}, "takes no value&replica", func(r *redisServer) { r.do("REPLICAOF", "NO", "ONE") }, "takes values again&was=read_only")
}

// TestNoPermission: the log names a user who may not write as the cause.
func TestNoPermission(t *testing.T) {
	r := startRedis(t, "--user", "me", "on", ">pw", "~*", "&*", "+@all", "-set")
	d, log := logged(t, "redis://me:pw@"+r.Addr)
	waittest.Until(t, "the server answers", func() bool { return d.remote.servers.up("k") })
	d.put("k", 10)
	waittest.Until(t, "it is refused", func() bool { return d.remote.Stats().Refused["login"] == 1 })
	if !log.has("takes no value", "user or the password") || !d.get("k", 10) {
		t.Error("no clear line, or the value is lost")
	}
}

// TestShutOut: a Redis that lets the daemon not in is down, and the log says why before anything is put.
func TestShutOut(t *testing.T) {
	f := func(user, database, why string, args ...string) {
		t.Helper()
		r := startRedis(t, args...)
		d, log := logged(t, "redis://"+user+r.Addr+"/"+database)
		waittest.Until(t, "the log says why", func() bool { return log.has("refuses this daemon's login", why) })
		if d.remote.servers.up("k") {
			t.Error(why + ": the server is up")
		}
	}
	f("me:wrong@", "0", "WRONGPASS", "--user", "me", "on", ">pw", "~*", "&*", "+@all")
	f("", "0", "NOAUTH", "--requirepass", "pw")
	f("", "99", "DB index")
}

// TestForbiddenCommands: the log names each command that an ACL forbids, once, though nothing fails for it.
func TestForbiddenCommands(t *testing.T) {
	t.Parallel()
	r := startRedis(t, "--user", "me", "on", ">pw", "~*", "&*", "+@all", "-info")
	d, log := logged(t, "redis://me:pw@"+r.Addr)
	d.put("k", 10)
	waittest.Until(t, "the log names the command", func() bool { return log.has("forbids a command", "command=info") })
	time.Sleep(1200 * time.Millisecond)
	if n := strings.Count(log.String(), "command=info"); n != 1 || !d.remote.servers.up("k") {
		t.Errorf("%d lines:\n%s", n, log)
	}
}

// TestRefusedReplacement: a value that a Redis refuses does not leave the key's older value there.
func TestRefusedReplacement(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	d := overRedis(t, "redis://"+r.Addr)
	waittest.Until(t, "the server answers", func() bool { return d.remote.servers.up("k") })
	d.put("k", 1000)
	d.written()
	r.do("CONFIG", "SET", "maxmemory", "1")
	d.put("k", 2000)
	waittest.Until(t, "it is refused", func() bool { return d.remote.Stats().Refused["oom"] == 1 })
	d.put("k", 3000) // not even sent
	d.written()
	d.forget("k") // as an eviction does
	if d.exists("k") || d.get("k", 3000) {
		t.Error("the old value is there again")
	}
	waittest.Until(t, "the server has deleted it", func() bool { return r.bare.Exists(t.Context(), "p:k").Val() == 0 })
	r.do("CONFIG", "SET", "maxmemory", "0")
	waittest.Until(t, "a new value goes there", func() bool {
		d.put("k", 4000)
		d.written()
		return r.bare.StrLen(t.Context(), "p:k").Val() == 4000
	})
}

// oom is the error of a Redis without memory.
type oom struct{}

func (oom) Error() string { return "OOM command not allowed when used memory > 'maxmemory'." }
func (oom) RedisError()   {}

// TestRefusesLargeValues: a Redis that has room for small values only is logged once, not at each change.
func TestRefusesLargeValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &record{}
		n := newNode("redis:6379", slog.New(slog.NewTextHandler(log, nil)))
		for range 100 {
			n.refuse(oom{})
			time.Sleep(pauseTime)
			n.took()
		}
		if got := strings.Count(log.String(), "\n"); got != 1 || n.refusing != refusedOOM {
			t.Errorf("%d lines, it refuses %q:\n%s", got, n.refusing, log)
		}
		time.Sleep(calmTime)
		n.took()
		if !log.has("takes values again", "was=oom") || n.refusing != "" {
			t.Errorf("no line for the end:\n%s", log)
		}
	})
}

// TestFailover: the master of a sentinel dies, its replica takes over.
func TestFailover(t *testing.T) {
	t.Parallel()
	url, master, _ := redistest.Sentinels(t)
	d, log := logged(t, url)
	waittest.Until(t, "the server answers", func() bool { return d.remote.servers.up("k") })
	x := startTraffic(d)
	waittest.Until(t, "values come from the master", func() bool { return d.store.Stats().FromFar > 50 })
	master.Kill()
	waittest.Until(t, "the master is down", func() bool { return log.has("does not answer") })
	waittest.Until(t, "the replica is there", func() bool { return log.has("is back") })
	before := d.store.Stats().FromFar
	waittest.Until(t, "values come from the replica", func() bool { return d.store.Stats().FromFar > before+50 })
	lookup, get := x.stop()
	t.Logf("lookups: p99 %s; longest get %s; %+v", lookup, get, d.remote.Stats())
	if lookup > 300*time.Millisecond || get > patience {
		t.Errorf("p99 of lookups %s, longest get %s", lookup, get)
	}
}

// TestClusterNodeDies: the values of a dead node are misses, those of the others are not.
func TestClusterNodeDies(t *testing.T) {
	t.Parallel()
	url, nodes := redistest.Cluster(t)
	for _, n := range nodes {
		n.Do("CONFIG SET cluster-require-full-coverage no")
	}
	d, log := logged(t, url)
	waittest.Until(t, "the cluster is known", func() bool { return d.remote.servers.up("k") })
	for i := range 60 {
		d.put(fmt.Sprint("k", i), 1000)
	}
	d.written()
	nodes[2].Kill()
	hits := 0
	waittest.Until(t, "the node is down", func() bool {
		hits = 0
		for i := range 60 {
			key := fmt.Sprint("k", i)
			d.forget(key)
			if d.get(key, 1000) {
				hits++
			}
		}
		return log.has("does not answer", nodes[2].Addr)
	})
	if hits < 20 || hits > 55 {
		t.Errorf("%d of 60 values are hits with one node of three dead", hits)
	}
}

// TestRedisEvicts: with a Redis that evicts by itself, LMCache's native client gets what it was promised. A value that
// the Redis may have evicted is not promised until a query has found it.
func TestRedisEvicts(t *testing.T) {
	t.Parallel()
	r := startRedis(t, "--maxmemory", "24mb", "--maxmemory-policy", "allkeys-lru")
	d := startDaemon(t, Config{Redis: &Redis{URL: "redis://" + r.Addr}}) // memory keeps nothing for itself
	worker := netip.MustParseAddr("10.0.0.1")
	promise := func(key string) bool { return d.store.Promise(key, worker, time.Minute) }
	waittest.Until(t, "the Redis has said what it evicted", func() bool {
		d.put("k", 1<<20)
		d.put("j", 1<<20)
		d.written()
		return promise("k")
	})
	waittest.Until(t, "what was promised is in memory", func() bool { return d.store.Stats().Wanted == 0 })
	flood := func() {
		for i := range 64 {
			r.do("SET", fmt.Sprint("flood", i), make([]byte, 1<<20))
		}
	}
	flood()
	if l := d.store.Get(t.Context(), "k", worker); l == nil {
		t.Error("what was promised is lost")
	} else {
		l.Release()
	}
	waittest.Until(t, "the evictions are known", func() bool { f, _ := d.remote.known("j"); return !d.remote.servers.steady("j", f) })
	if promise("j") {
		t.Error("it promises what may be evicted")
	}
	waittest.Until(t, "it found out that this one is", func() bool { return !d.exists("j") })
	if n := d.store.Stats(); n.Broken != 0 {
		t.Errorf("%d promises were broken", n.Broken)
	}
	d.put("l", 1<<20)
	d.written()
	waittest.Until(t, "what is known to be there is promised", func() bool { return promise("l") })
}

// TestNoOlderValue: a value that the Redis missed is never followed by the one before it, also if this daemon did not
// know of that one. Of LMCache's chunks, whose keys name their content, another daemon's value stays.
func TestNoOlderValue(t *testing.T) {
	const chunk = "r\x00org/model@1@0@00112233@bfloat16kv_bytes"
	r := startRedis(t)
	for _, key := range []string{"k", chunk} {
		r.do("SET", "p:"+key, strings.Repeat("1", 1000))
	}
	d := overRedis(t, "redis://"+r.Addr)
	waittest.Until(t, "the server answers", func() bool { return d.remote.servers.up("k") })
	r.do("CONFIG", "SET", "maxmemory", "1")
	for _, key := range []string{"k", chunk} {
		d.put(key, 2000)
		d.written()
		d.forget(key) // as an eviction does
	}
	if d.get("k", 1000) {
		t.Error("the value before the last one is there")
	}
	waittest.Until(t, "the server has deleted it", func() bool { return r.bare.Exists(t.Context(), "p:k").Val() == 0 })
	if r.bare.Exists(t.Context(), "p:"+chunk).Val() != 1 {
		t.Error("another daemon's chunk is deleted")
	}
}
