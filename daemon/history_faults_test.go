package daemon

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

const (
	historyLost = "history: Redis is lost: routers receive nothing from each other, and each goes on with what it knows"
	historyBack = "history: Redis is back: routers receive from each other again"
	historyOdd  = "history: messages are refused"
)

// settles is how long routers may take to believe the same after a fault.
const settles = 5 * time.Second

// loggedRouters starts n routers whose logs are kept.
func loggedRouters(t *testing.T, n int, url string, f vllmsim.Fleet) (all []*running, logs []*logLines) {
	t.Helper()
	for i := range n {
		toml := settings("prefixaware", f.URLs()...) + fmt.Sprintf("[history]\nredis = %q\nname = \"router-%d\"\n", url, i)
		r, lines := startLogged(t, toml, len(f))
		all, logs = append(all, r), append(logs, lines)
	}
	return all, logs
}

// askAll sends so many requests to each router and returns how long the median took.
func askAll(t *testing.T, all []*running, name string, n int) time.Duration {
	t.Helper()
	var took []time.Duration
	for i := range n * len(all) {
		body := fmt.Sprintf(`{"model":"sim","max_tokens":1,"prompt":%q}`, strings.Repeat(fmt.Sprint(name, i%n, " "), 60))
		began := time.Now()
		s := all[i%len(all)].do("POST", "/v1/completions", body)
		took = append(took, time.Since(began))
		if s.status != 200 || s.err != nil {
			t.Fatalf("%s: request %d: %d %v %s", name, i, s.status, s.err, s.body)
		}
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// Whatever becomes of Redis, no request fails or waits for it, the log says so once, and when it is well again the
// routers soon believe the same.
func TestRoutersOutliveTheirRedis(t *testing.T) {
	t.Parallel()
	f := func(name string, known bool, breaks, mends func(b *redistest.Server)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := redistest.New(t)
			b.Start()
			all, logs := loggedRouters(t, 2, b.URL(), sims(t, 3, vllmsim.Config{}))
			for i, r := range all {
				eventually(t, fmt.Sprintf("router %d hears the other", i), func() bool { return r.hears() == 1 })
			}
			well := askAll(t, all, "before", 8)
			breaks(b) // what nobody has read yet may go with it
			if known {
				for _, lines := range logs {
					if l := lines.wait(t, historyLost); l["err"] == nil || l["addr"] == nil {
						t.Errorf("the line says not what and where: %v", l)
					}
				}
			}
			// Requests that waited for a Redis that does not answer would take a second each.
			if ill := askAll(t, all, "meanwhile", 8); ill > 10*well+300*time.Millisecond {
				t.Errorf("a request takes %v meanwhile, %v before", ill, well)
			}
			mends(b)
			if known {
				for _, lines := range logs {
					if l := lines.wait(t, historyBack); l["after"] == nil {
						t.Errorf("the line says not since when: %v", l)
					}
				}
			}
			askAll(t, all, "after", 4)
			agree(t, all, settles)
			for i, lines := range logs {
				if n := len(lines.with(t, historyLost)); n > 2 {
					t.Errorf("router %d says %d times that Redis is lost", i, n)
				}
			}
		})
	}
	f("killed, and another takes over", true, (*redistest.Server).Kill, (*redistest.Server).Start)
	f("stopped", true, func(b *redistest.Server) { b.Signal(syscall.SIGSTOP) }, func(b *redistest.Server) { b.Signal(syscall.SIGCONT) })
	f("full", true, func(b *redistest.Server) {
		b.Do("CONFIG SET maxmemory-policy noeviction")
		b.Do("CONFIG SET maxmemory 1")
	}, func(b *redistest.Server) { b.Do("CONFIG SET maxmemory 0") })
	f("read-only, as a replica", true, func(b *redistest.Server) { b.Do("REPLICAOF 127.0.0.1 1") },
		func(b *redistest.Server) { b.Do("REPLICAOF NO ONE") })
	f("slow", false, func(b *redistest.Server) { b.Do("CLIENT PAUSE 600 ALL") }, func(b *redistest.Server) { b.Do("CLIENT PAUSE 300 ALL") })
	f("flushed", false, func(b *redistest.Server) { b.Do("FLUSHALL") }, func(*redistest.Server) {})
	f("another takes over whose clock is behind", true, func(b *redistest.Server) {
		b.Do("XADD {warmpath}/history/main 9999999999999-1 f x") // what comes after it has a time of the year 2286
		b.Kill()
	}, (*redistest.Server).Start)
}

// Routers that start without Redis serve, and find each other when it comes.
func TestRoutersStartBeforeTheirRedis(t *testing.T) {
	t.Parallel()
	b := redistest.New(t)
	all, logs := loggedRouters(t, 2, b.URL(), sims(t, 3, vllmsim.Config{}))
	askAll(t, all, "before", 4)
	for _, lines := range logs {
		lines.wait(t, historyLost)
	}
	b.Start()
	for i, r := range all {
		logs[i].wait(t, historyBack)
		eventually(t, fmt.Sprintf("router %d hears the other", i), func() bool { return r.hears() == 1 })
	}
	askAll(t, all, "after", 4)
	agree(t, all, settles)
}

// What others write into the stream harms nobody: it is counted and logged once, and all else is heard.
func TestForeignEntriesInTheStream(t *testing.T) {
	t.Parallel()
	b := redistest.New(t)
	b.Start()
	all, logs := loggedRouters(t, 2, b.URL(), sims(t, 3, vllmsim.Config{}))
	for i, r := range all {
		eventually(t, fmt.Sprintf("router %d hears the other", i), func() bool { return r.hears() == 1 })
	}
	for _, fields := range []string{"f x", "other thing", `f "WH"`, "f " + strings.Repeat("WH", 4000), "g x f y", `f ""`} {
		b.Do("XADD {warmpath}/history/main * " + fields)
	}
	for i, r := range all {
		eventually(t, "they are counted", func() bool { return r.peers.Stats().Pools[0].Received.Foreign >= 6 })
		if l := logs[i].wait(t, historyOdd); l["why"] == nil || l["remedy"] == nil || l["stream"] == nil {
			t.Errorf("the line says not why, where, and what to do: %v", l)
		}
		if n := len(logs[i].with(t, historyOdd)); n > 1 {
			t.Errorf("router %d says it %d times", i, n)
		}
	}
	askAll(t, all, "after", 4)
	agree(t, all, settles)
}

// Two routers that name the same worker differently, or have others, say so.
func TestRoutersOfDifferentWorkersSaySo(t *testing.T) {
	t.Parallel()
	b := redistest.New(t)
	b.Start()
	f := sims(t, 3, vllmsim.Config{})
	urls := f.URLs()
	shared := fmt.Sprintf("[history]\nredis = %q\n", b.URL())
	one, first := startLogged(t, settings("prefixaware", urls[0], urls[1])+shared+"name = \"one\"\n", 2)
	renamed := strings.Replace(settings("prefixaware", urls[0], urls[2]), `"w1"`, `"other"`, 1)
	two, second := startLogged(t, renamed+shared+"name = \"two\"\n", 2)
	eventually(t, "they hear each other", func() bool { return one.hears() == 1 && two.hears() == 1 })
	line := func(lines *logLines, start, router, key, want string) {
		t.Helper()
		var found map[string]any
		eventually(t, "a line that begins "+start, func() bool { found = lines.starting(t, start); return found != nil })
		if found["router"] != router || fmt.Sprint(found[key]) != want || found["pool"] != "main" {
			t.Errorf("%v; want router %s, %s %q", found, router, key, want)
		}
	}
	const named, moved = "history: another router names the same worker differently", "history: another router has another URL"
	const others = "history: another router has other workers"
	line(first, named, "two", "workers", "w1 here is other there")
	line(second, named, "one", "workers", "other here is w1 there")
	line(first, moved, "two", "workers", "w2")
	line(second, moved, "one", "workers", "w2")
	if l := first.starting(t, others); l != nil {
		t.Errorf("%v; want none: each worker of the other has its line", l)
	}
	askAll(t, []*running{one, two}, "all the same", 4)
}

// starting returns the last line whose message begins so, nil if there is none.
func (l *logLines) starting(t *testing.T, start string) (found map[string]any) {
	t.Helper()
	for _, line := range l.Lines(t) {
		if msg, _ := line["msg"].(string); strings.HasPrefix(msg, start) {
			found = line
		}
	}
	return found
}

// Round robin over several routers gives each worker as many requests, but for a few.
func TestRoundRobinOverRouters(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	all := routers(t, 4, url, "roundrobin", sims(t, 4, vllmsim.Config{}))
	to := map[string]int{}
	for i := range 80 {
		s := all[i*7%4].do("POST", "/v1/completions", short, "X-Warmpath-Explain", "1")
		if s.status != 200 {
			t.Fatal(s.status, s.body)
		}
		to[s.header.Get("X-Warmpath-Worker")]++
	}
	for w, n := range to {
		if n < 20-4 || n > 20+4 || len(to) != 4 {
			t.Errorf("%s has %d of 80 requests; want 20, but for one a router: %v", w, n, to)
		}
	}
}

// max_in_flight counts the requests of all routers.
func TestLimitCountsAllRouters(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	free := make(chan struct{})
	var held atomic.Int64
	worker := fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		held.Add(1)
		<-free
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, completion)
	}).URL
	var all []*running
	for i := range 2 {
		toml := withPool(settings("prefixaware", worker), "max_in_flight = 2\nqueue.max_requests = 0")
		all = append(all, start(t, toml+fmt.Sprintf("[history]\nredis = %q\nname = \"router-%d\"\n", url, i), 1))
	}
	for i, r := range all {
		eventually(t, fmt.Sprintf("router %d hears the other", i), func() bool { return r.hears() == 1 })
	}
	release := sync.OnceFunc(func() { close(free) })
	defer release() // else the worker waits for its requests
	ended := make(chan seen, 2)
	for range 2 {
		go func() { ended <- all[0].do("POST", "/v1/completions", short) }()
	}
	eventually(t, "the worker has both requests", func() bool { return held.Load() == 2 })
	eventually(t, "the other router knows", func() bool { return all[1].peers.Stats().Pools[0].Received.Open == 2 })
	if s := all[1].do("POST", "/v1/completions", short); s.status != 429 || s.header.Get("Retry-After") == "" {
		t.Errorf("a third request: %d, %q, Retry-After %q; want 429", s.status, s.body, s.header.Get("Retry-After"))
	}
	if w := all[1].describe()[0].Workers[0]; w.InFlight != 0 || w.Others != 2 {
		t.Errorf("the worker has %d in flight and %d of others; want 0 and 2", w.InFlight, w.Others)
	}
	release()
	for range 2 {
		if s := <-ended; s.status != 200 {
			t.Errorf("%d %s", s.status, s.body)
		}
	}
	eventually(t, "there is room again", func() bool { return all[1].do("POST", "/v1/completions", short).status == 200 })
}
