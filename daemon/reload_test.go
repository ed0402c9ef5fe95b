package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/plugins"
)

// newcomer builds the strategy that a newcomer wrote, with the standard toolchain.
func newcomer(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "newcomer.wasm")
	c := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", file, "../host/testdata/guests/newcomer")
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// underLoad runs clients until the function returned is called; that gives the requests sent and those that failed.
func (r *running) underLoad(clients int) (end func() (sent, failed int64)) {
	var sent, failed atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				s := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":"%d of %d","max_tokens":3,"stream":%v}`, i, c, i%2 == 0))
				sent.Add(1)
				if s.status != 200 || s.err != nil {
					failed.Add(1)
					r.t.Logf("failed: %d %v %.200s", s.status, s.err, s.body)
				}
			}
		})
	}
	end = func() (int64, int64) { cancel(); wg.Wait(); return sent.Load(), failed.Load() }
	r.t.Cleanup(func() { end() }) // of a test that has failed
	return end
}

func (r *running) strategy() string { return r.describe()[0].Strategy }

func TestNewcomersStrategyGoesLiveUnderLoad(t *testing.T) {
	f := sims(t, 3, vllmsim.Config{Speed: 100})
	r := start(t, settings("prefixaware", f.URLs()...), 3)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go r.Watch(ctx)
	end := r.underLoad(4)
	file := newcomer(t, filepath.Dir(r.file))
	toml := settings("mine", f.URLs()...) + fmt.Sprintf("[strategies.mine]\npath = %q\n", filepath.Base(file))
	write(t, r.file, toml)
	eventually(t, "the newcomer serves", func() bool { return r.strategy() == "mine" })
	if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`, "X-Warmpath-Explain", "1"); s.header.Get("X-Warmpath-Strategy") != "mine" {
		t.Errorf("decided by %q", s.header.Get("X-Warmpath-Strategy"))
	}
	sha := r.describe()[0].Module
	builtin, err := plugins.Builtin("roundrobin")
	if err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(filepath.Dir(file), "next") // renamed over: the module alone changes
	write(t, next, string(builtin))
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the changed module serves", func() bool { return r.describe()[0].Module != sha })
	sent, failed := end()
	if failed != 0 || sent < 20 {
		t.Fatalf("%d of %d requests failed", failed, sent)
	}
	t.Logf("%d requests, none failed", sent)
}

func TestBadReloadLeavesAllAsItWas(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{})
	good := settings("prefixaware", f.URLs()...)
	r := start(t, good, 1)
	trap := filepath.Join(filepath.Dir(r.file), "trap.wasm")
	module(t, "no_pick.wat", trap)
	f1 := func(name, toml, want string) {
		t.Helper()
		write(t, r.file, toml)
		err := r.Reload()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want %q in it", name, err, want)
		}
		if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`); s.status != 200 || r.strategy() != "prefixaware" {
			t.Errorf("%s: %d, strategy %s: the old configuration is gone", name, s.status, r.strategy())
		}
	}
	mine := "[strategies.mine]\npath = %q\n"
	f1("malformed", "[server", "warmpath.toml:1")
	f1("unknown key", good+"lissen = 1\n", "lissen")
	f1("missing module", settings("mine", f.URLs()...)+fmt.Sprintf(mine, "none.wasm"), "none.wasm")
	f1("missing export", settings("mine", f.URLs()...)+fmt.Sprintf(mine, trap), "wp_pick")
	write(t, r.file, good)
	if err := r.Reload(); err != nil {
		t.Errorf("the good file again: %v", err)
	}
}

// TestAModuleThatComesAfterItsName: a file that names a module which is not there, or is faulty, comes into force when
// the module is.
func TestAModuleThatComesAfterItsName(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r, lines := startLogged(t, settings("prefixaware", f.URLs()...), 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go r.Watch(ctx)
	file := filepath.Join(filepath.Dir(r.file), "late.wasm")
	write(t, r.file, settings("late", f.URLs()...)+"[strategies.late]\npath = \"late.wasm\"\n")
	refused := func(want string) {
		t.Helper()
		eventually(t, "a refusal that says "+want, func() bool {
			return slices.ContainsFunc(lines.with(t, "reload refused: the configuration in force stays"),
				func(l map[string]any) bool { return strings.Contains(fmt.Sprint(l["error"]), want) })
		})
	}
	refused("no such file")
	module(t, "no_pick.wat", file)
	refused("exports no func[wp_pick]")
	module(t, "tiny.wat", file)
	eventually(t, "the module serves", func() bool { return r.strategy() == "late" })
}

// module assembles one of testdata/modules.
func module(t *testing.T, wat, file string) {
	t.Helper()
	b, err := wasmtest.File("../testdata/modules/" + wat)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(b))
}

func TestFaultyModulesAreAnsweredByTheFallback(t *testing.T) {
	t.Parallel()
	f := sims(t, 5, vllmsim.Config{})
	fn := func(wat string, status int, reason string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "mine.wasm")
		module(t, wat, file)
		r := start(t, settings("mine", f.URLs()...)+fmt.Sprintf("[strategies.mine]\npath = %q\npick_timeout = \"1s\"\n", file), 5) // a busy machine ends none before its fuel does
		defer r.stop()
		s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`, "X-Warmpath-Explain", "1")
		if s.status != status || s.header.Get("X-Warmpath-Reason") != reason {
			t.Errorf("%s: %d, reason %q; want %d %q (%s)", wat, s.status, s.header.Get("X-Warmpath-Reason"), status, reason, s.body)
		}
		m := do(t, "GET", "http://"+r.AdminAddr()+"/metrics", "")
		if name, ok := strings.CutPrefix(reason, "fallback: "); ok && !strings.Contains(m.body, `warmpath_fallback_total{pool="main",reason="`+name+`",strategy="mine"} 1`) {
			t.Errorf("%s: the fallback is not counted by its reason", wat)
		}
		if status == 429 && s.header.Get("Retry-After") == "" {
			t.Errorf("%s: 429 without Retry-After", wat)
		}
	}
	fn("loop.wat", 200, "fallback: fuel")
	fn("trap.wat", 200, "fallback: trap")
	fn("recursion.wat", 200, "fallback: fuel")
	fn("index.wat", 200, "fallback: bad_index")
	fn("decline.wat", 200, "fallback: decline")
	fn("reject.wat", 429, "none")
}

func TestWorkersComeAndGoUnderLoad(t *testing.T) {
	f := sims(t, 4, vllmsim.Config{Speed: 100})
	r := start(t, settings("prefixaware", f.URLs()...), 4)
	end := r.underLoad(4)
	for i := range 6 {
		write(t, r.file, regexp.MustCompile("id = .*").ReplaceAllString(settings("prefixaware", f.URLs()[i%2*2:i%2*2+2]...), ""))
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		r.waitUp(2)
	}
	sent, failed := end()
	if failed != 0 || sent < 20 {
		t.Fatalf("%d of %d requests failed", failed, sent)
	}
	eventually(t, "nothing in flight", func() bool { return r.inFlight() == 0 })
}

func TestPoolsComeAndGoUnderLoad(t *testing.T) {
	f := sims(t, 4, vllmsim.Config{Speed: 100})
	r := start(t, settings("prefixaware", f.URLs()[:2]...), 2)
	end := r.underLoad(4)
	for i := range 12 {
		half := f.URLs()[i%2*2 : i%2*2+2]
		write(t, r.file, strings.Replace(settings("prefixaware", half...), `name = "main"`, fmt.Sprintf("name = \"p%d\"", i), 1))
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if sent, failed := end(); failed != 0 || sent < 20 {
		t.Fatalf("%d of %d requests failed", failed, sent)
	}
}

func TestARemovedPoolStillChooses(t *testing.T) {
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, settings("prefixaware", f.URLs()...), 2)
	p := r.state.Load().pools[0]
	p.close() // as a reload does behind a request that has found the pool already
	if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`, "X-Warmpath-Explain", "1"); s.status != 200 ||
		s.header.Get("X-Warmpath-Reason") != "fallback: closed" {
		t.Fatalf("%d %s; want 200 by the fallback", s.status, s.header.Get("X-Warmpath-Reason"))
	}
}

// TestWhatAReloadLeavesBehind: what waits for a restart is named until the file has again what the process was started
// with, whatever is reloaded or refused meanwhile; the page of the configuration shows what is in force; and the last
// change stays in view when a reload finds nothing changed.
func TestWhatAReloadLeavesBehind(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{})
	good := settings("prefixaware", f.URLs()...)
	r := start(t, good, 1)
	check := func(what, server, waits, change string, taken bool) {
		t.Helper()
		write(t, r.file, withServer(good, server))
		if err := r.Reload(); (err == nil) != taken {
			t.Fatalf("%s: %v", what, err)
		}
		var o operator.Overview
		if code, text := r.decided("/api/v1/overview", &o); code != 200 {
			t.Fatal(code, text)
		}
		if got := strings.Join(o.Reload.Restart, " "); got != waits {
			t.Errorf("%s: %q wait for a restart; want %q", what, got, waits)
		}
		if got := strings.Join(o.Change.Changed, " "); got != change {
			t.Errorf("%s: the last change is %q; want %q", what, got, change)
		}
		var c struct {
			Server struct {
				Idle string `json:"idle_timeout"`
			}
		}
		if r.decided("/api/v1/config", &c); c.Server.Idle != "1m30s" {
			t.Errorf("%s: idle_timeout is said to be %s; in force is that of the start", what, c.Server.Idle)
		}
		if got := r.epoch().IdleTimeout; got != 90*time.Second {
			t.Errorf("%s: idle connections are closed after %v; in force is that of the start", what, got)
		}
	}
	const idle, both = `idle_timeout = "80s"`, "idle_timeout = \"80s\"\nlog_level = \"debug\""
	check("a key of the start is changed", idle, "server.idle_timeout", "server.idle_timeout", true)
	check("nothing is changed", idle, "server.idle_timeout", "server.idle_timeout", true)
	check("another key is changed", both, "server.idle_timeout", "server.log_level", true)
	check("a file is refused", "lissen = 1", "server.idle_timeout", "server.log_level", false)
	check("the key is as at the start", `log_level = "debug"`, "", "server.idle_timeout", true)
	check("nothing is changed since", `log_level = "debug"`, "", "server.idle_timeout", true)
}

// TestReloadBesideAChangeOfWorkers: workers_file changes before and after a reload reads it, while the pool still waits
// for the first health check of an earlier worker. In the end the pool has the new settings and the newest workers.
func TestReloadBesideAChangeOfWorkers(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	release := make(chan bool)
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(silent.Close)
	file := filepath.Join(t.TempDir(), "workers.toml")
	list := func(url string) { write(t, file, fmt.Sprintf("[[workers]]\nurl = %q\n", url)) }
	list(f.URLs()[0])
	toml := fromDefaults(fmt.Sprintf("workers_file = %q\nmax_in_flight = 5", file))
	r := start(t, toml, 1)
	list(silent.URL)
	eventually(t, "the pool waits for the silent worker", func() bool { return len(r.describe()[0].Workers) == 2 })
	write(t, r.file, strings.Replace(toml, "max_in_flight = 5", "max_in_flight = 7", 1))
	reloaded := make(chan error, 1)
	go func() { reloaded <- r.Reload() }()
	time.Sleep(200 * time.Millisecond) // it has read the list
	list(f.URLs()[1])
	time.Sleep(3 * watchPoll) // the list is seen
	close(release)
	if err := <-reloaded; err != nil {
		t.Fatal(err)
	}
	eventually(t, "the newest settings with the newest workers", func() bool {
		c := &r.state.Load().pools[0].set.Load().conf
		return c.MaxInFlight == 7 && len(c.Workers) == 1 && c.Workers[0].URL == f.URLs()[1]
	})
}

// TestPoolsWaitForTheirWorkersTogether: a reload gives three pools new workers that do not answer. It waits for a health
// check of each, as long as for one of them: 2 s from the first check on, where one after another they take 6.
func TestPoolsWaitForTheirWorkersTogether(t *testing.T) {
	t.Parallel()
	f := sims(t, 3, vllmsim.Config{})
	var before, after strings.Builder
	var asked atomic.Int64 // Unix nanoseconds of the first check of a reload
	for i, u := range f.URLs() {
		silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked.CompareAndSwap(0, time.Now().UnixNano())
			<-r.Context().Done()
		}))
		t.Cleanup(silent.Close)
		pool := "[[pools]]\nname = \"p%d\"\nmodels = [\"m%d\"]\n[[pools.workers]]\nurl = %q\n"
		fmt.Fprintf(&before, pool, i, i, u)
		fmt.Fprintf(&after, pool, i, i, silent.URL)
	}
	r := start(t, freePorts+before.String(), 0)
	reload := func(text string) {
		write(t, r.file, freePorts+text)
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	waittest.AtBest(t, "the wait of a reload", takeOver, func() time.Duration {
		reload(before.String())
		asked.Store(0)
		reload(after.String())
		took := time.Since(time.Unix(0, asked.Load()))
		if took < time.Second {
			t.Errorf("the reload waited %v; want the 2 s of a health check", took)
		}
		return took
	})
}

// TestDrainsFollowTheirWorkers: a worker that was drained stays so when its pool gets another name, and when it moves
// to another pool.
func TestDrainsFollowTheirWorkers(t *testing.T) {
	f := sims(t, 3, vllmsim.Config{})
	pool := func(name string, workers ...int) string {
		text := fmt.Sprintf("[[pools]]\nname = %q\nmodels = [%q]\n", name, name)
		for _, i := range workers {
			text += fmt.Sprintf("[[pools.workers]]\nurl = %q\nid = \"w%d\"\n", f.URLs()[i], i)
		}
		return text
	}
	r := start(t, freePorts+pool("a", 0, 1)+pool("b", 2), 0)
	eventually(t, "the worker is drained", func() bool { return r.state.Load().pools[0].route.Workers.Drain("w1", true, time.Now()) })
	for _, c := range []struct{ what, pools string }{
		{"another name", pool("c", 0, 1) + pool("b", 2)},
		{"another pool", pool("c", 0) + pool("b", 2, 1)},
		{"nothing is changed", pool("c", 0) + pool("b", 2, 1)},
	} {
		write(t, r.file, freePorts+c.pools)
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		for _, p := range r.describe() {
			for _, w := range p.Workers {
				if w.Drained != (w.ID == "w1") {
					t.Errorf("%s: worker %s of pool %s: drained %v", c.what, w.ID, p.Name, w.Drained)
				}
			}
		}
	}
}

// TestAPoolThatComesLater: a pool that a reload adds keeps sessions as long as those that serve already. The file's new
// life and ttl take effect at the next start, as the reload reports.
func TestAPoolThatComesLater(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	toml := settings("roundrobin", f.URLs()[0])
	r := start(t, toml, 1)
	var b strings.Builder
	b.WriteString(bindAlways + "ttl = \"2m\"\nlife = \"1m\"\n")
	addPool(&b, "second", "roundrobin", "sim", f.URLs()[1])
	b.WriteString(toml)
	write(t, r.file, b.String())
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.waitUp(2)
	if s := r.do("POST", "/v1/completions", hello, "X-Session-Id", "conversation"); s.status != 200 {
		t.Fatalf("%d %s", s.status, s.body)
	}
	var pools []operator.PoolSessions
	if code, text := r.decided("/api/v1/sessions", &pools); code != 200 || len(pools) != 2 || len(pools[0].List) != 1 {
		t.Fatal(code, text)
	}
	if left := time.Until(pools[0].List[0].Forgotten); left < 20*time.Minute {
		t.Errorf("the second pool forgets a session after %v; want the 30m of the start", left)
	}
}
