package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/vllmsim"
)

const (
	historyLost = "history: Redis is lost: routers do not hear each other, and each goes on with what it knows"
	historyBack = "history: Redis is back: routers hear each other again"
	historyOdd  = "history: messages are not believed"
)

// breakable is a redis-server with default settings that can be ended and started on one address.
type breakable struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd // nil = it does not run
}

func newBreakable(t *testing.T) *breakable {
	t.Helper()
	ownRedis(t)                             // skips the test where there is none
	dir, err := os.MkdirTemp("", "history") // not t.TempDir: a socket's path may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	b := &breakable{t: t, dir: dir}
	t.Cleanup(func() { b.kill(); os.RemoveAll(dir) })
	return b
}

func (b *breakable) socket() string { return filepath.Join(b.dir, "r.sock") }

func (b *breakable) start() {
	b.t.Helper()
	b.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", b.socket(), "--dir", b.dir, "--save", "")
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	eventually(b.t, "redis-server listens", func() bool { return b.try("PING") == "+PONG" })
}

func (b *breakable) kill() {
	if b.cmd != nil {
		_ = b.cmd.Process.Kill()
		_ = b.cmd.Wait()
		b.cmd = nil
	}
}

// try sends a command and returns the first line of its reply; "" if there is none.
func (b *breakable) try(command string) string {
	c, err := net.DialTimeout("unix", b.socket(), 5*time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprintf(c, "%s\r\n", command)
	line, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line)
}

func (b *breakable) do(command string) {
	b.t.Helper()
	if got := b.try(command); got == "" || got[0] == '-' {
		b.t.Fatalf("%s: %q", command, got)
	}
}

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
	f := func(name string, known bool, breaks, mends func(b *breakable)) {
		t.Run(name, func(t *testing.T) {
			b := newBreakable(t)
			b.start()
			all, logs := loggedRouters(t, 2, "unix://"+b.socket(), sims(t, 3, vllmsim.Config{}))
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
			agree(t, all, 15*time.Second) // 5 s on an idle machine
			for i, lines := range logs {
				if n := len(lines.with(t, historyLost)); n > 2 {
					t.Errorf("router %d says %d times that Redis is lost", i, n)
				}
			}
		})
	}
	f("killed, and another takes over", true, (*breakable).kill, (*breakable).start)
	f("stopped", true, func(b *breakable) { stop(b.t, b.cmd, "STOP") }, func(b *breakable) { stop(b.t, b.cmd, "CONT") })
	f("full", true, func(b *breakable) {
		b.do("CONFIG SET maxmemory-policy noeviction")
		b.do("CONFIG SET maxmemory 1")
	}, func(b *breakable) { b.do("CONFIG SET maxmemory 0") })
	f("read-only, as a replica", true, func(b *breakable) { b.do("REPLICAOF 127.0.0.1 1") },
		func(b *breakable) { b.do("REPLICAOF NO ONE") })
	f("slow", false, func(b *breakable) { b.do("CLIENT PAUSE 600 ALL") }, func(b *breakable) { b.do("CLIENT PAUSE 300 ALL") })
	f("flushed", false, func(b *breakable) { b.do("FLUSHALL") }, func(*breakable) {})
	f("another takes over whose clock is behind", true, func(b *breakable) {
		b.do("XADD warmpath/history/main 9999999999999-1 f x") // what comes after it has a time of the year 2286
		b.kill()
	}, (*breakable).start)
}

// Routers that start without Redis serve, and find each other when it comes.
func TestRoutersStartBeforeTheirRedis(t *testing.T) {
	b := newBreakable(t)
	all, logs := loggedRouters(t, 2, "unix://"+b.socket(), sims(t, 3, vllmsim.Config{}))
	askAll(t, all, "before", 4)
	for _, lines := range logs {
		lines.wait(t, historyLost)
	}
	b.start()
	for i, r := range all {
		logs[i].wait(t, historyBack)
		eventually(t, fmt.Sprintf("router %d hears the other", i), func() bool { return r.hears() == 1 })
	}
	askAll(t, all, "after", 4)
	agree(t, all, 15*time.Second)
}

// What others write into the stream harms nobody: it is counted and logged once, and all else is heard.
func TestForeignEntriesInTheStream(t *testing.T) {
	b := newBreakable(t)
	b.start()
	all, logs := loggedRouters(t, 2, "unix://"+b.socket(), sims(t, 3, vllmsim.Config{}))
	for i, r := range all {
		eventually(t, fmt.Sprintf("router %d hears the other", i), func() bool { return r.hears() == 1 })
	}
	for _, fields := range []string{"f x", "other thing", `f "WH"`, "f " + strings.Repeat("WH", 4000), "g x f y", `f ""`} {
		b.do("XADD warmpath/history/main * " + fields)
	}
	for i, r := range all {
		eventually(t, "they are counted", func() bool { return r.peers.Stats().Pools[0].Heard.Foreign >= 6 })
		if l := logs[i].wait(t, historyOdd); l["why"] == nil || l["remedy"] == nil || l["stream"] == nil {
			t.Errorf("the line says not why, where, and what to do: %v", l)
		}
		if n := len(logs[i].with(t, historyOdd)); n > 1 {
			t.Errorf("router %d says it %d times", i, n)
		}
	}
	askAll(t, all, "after", 4)
	agree(t, all, 15*time.Second)
}

// Two routers that name the same worker differently, or have others, say so.
func TestRoutersOfDifferentWorkersSaySo(t *testing.T) {
	b := newBreakable(t)
	b.start()
	f := sims(t, 3, vllmsim.Config{})
	urls := f.URLs()
	shared := fmt.Sprintf("[history]\nredis = %q\n", "unix://"+b.socket())
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
	const named, others = "history: another router names the same worker differently", "history: another router has other workers"
	line(first, named, "two", "workers", "w1 here is other there")
	line(second, named, "one", "workers", "other here is w1 there")
	line(first, others, "two", "only_there", "w2") // of two: w2 is another worker there
	line(first, others, "two", "only_here", "w2")
	line(second, others, "one", "only_here", "w2")
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
	url, _ := ownRedis(t)
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
	url, _ := ownRedis(t)
	free := make(chan struct{})
	var held atomic.Int64
	worker := fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		held.Add(1)
		<-free
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"cmpl-1","object":"text_completion","model":"sim","choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`)
	}).URL
	var all []*running
	for i := range 2 {
		toml := withPool(settings("prefixaware", worker), "max_in_flight = 2")
		all = append(all, start(t, toml+fmt.Sprintf("[history]\nredis = %q\nname = \"router-%d\"\n", url, i), 1))
	}
	for i, r := range all {
		eventually(t, fmt.Sprintf("router %d hears the other", i), func() bool { return r.hears() == 1 })
	}
	ended := make(chan seen, 2)
	for range 2 {
		go func() { ended <- all[0].do("POST", "/v1/completions", short) }()
	}
	eventually(t, "the worker has both requests", func() bool { return held.Load() == 2 })
	eventually(t, "the other router knows", func() bool { return all[1].peers.Stats().Pools[0].Heard.Open == 2 })
	if s := all[1].do("POST", "/v1/completions", short); s.status != 429 || s.header.Get("Retry-After") == "" {
		t.Errorf("a third request: %d, %q, Retry-After %q; want 429", s.status, s.body, s.header.Get("Retry-After"))
	}
	close(free)
	for range 2 {
		if s := <-ended; s.status != 200 {
			t.Errorf("%d %s", s.status, s.body)
		}
	}
	eventually(t, "there is room again", func() bool { return all[1].do("POST", "/v1/completions", short).status == 200 })
}
