package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

const reloadedOK = "warmpath_config_last_reload_successful"

// TestReloadIsAllOrNothing: a file that is refused for one thing changes none of the others, and the gauge says so.
func TestReloadIsAllOrNothing(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	access := filepath.Join(t.TempDir(), "access.log")
	good := withServer(settings("prefixaware", f.URLs()[0]), fmt.Sprintf("access_log = %q", access))
	r, lines := startLogged(t, good, 1)
	f1 := func(what, toml string) {
		t.Helper()
		write(t, r.file, toml)
		if r.Reload() == nil {
			t.Fatalf("%s: accepted", what)
		}
		if got := r.metric(reloadedOK); got != 0 {
			t.Errorf("%s: %s is %v; want 0", what, reloadedOK, got)
		}
		before := len(logged(t, access))
		s := r.do("POST", "/v1/completions", short, "X-Warmpath-Explain", "1")
		if s.status != 200 || s.header.Get("X-Warmpath-Pool") != "main" || s.header.Get("X-Warmpath-Strategy") != "prefixaware" {
			t.Errorf("%s: %d by %s and %s; want 200 by the pool and the strategy before", what, s.status, s.header.Get("X-Warmpath-Pool"),
				s.header.Get("X-Warmpath-Strategy"))
		}
		eventually(t, "a line in the access log before", func() bool { return len(logged(t, access)) == before+1 })
		if w := r.describe()[0].Workers; len(r.describe()) != 1 || len(w) != 1 || len(lines.with(t, "routed")) != 0 {
			t.Errorf("%s: %d pools, %d workers, %d lines of debug; want 1, 1 and none", what, len(r.describe()), len(w), len(lines.with(t, "routed")))
		}
	}
	const other = "log_level = \"debug\"\nexplain = false\nmax_body_bytes = 20\n"
	changed := strings.Replace(settings("roundrobin", f.URLs()...), `name = "main"`, `name = "other"`, 1)
	f1("an access log that cannot be opened", withServer(changed, other+`access_log = "/proc/version/x"`))
	f1("no module", withServer(strings.Replace(changed, `"roundrobin"`, `"mine"`, 1), other)+"[strategies.mine]\npath = \"none.wasm\"\n")
	f1("an unknown key", withServer(changed, other+"lissen = 1"))
	write(t, r.file, withServer(changed, other+"idle_timeout = \"80s\""))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := r.metric(reloadedOK); got != 1 {
		t.Errorf("%s is %v after a good file; want 1", reloadedOK, got)
	}
	if s := r.do("POST", "/v1/completions", short); s.status != 413 {
		t.Errorf("%d; want 413 by the new max_body_bytes", s.status)
	}
	l := lines.wait(t, "reloaded, but some changed keys take effect at the next start only")
	if got := fmt.Sprint(l["keys"]); got != "[server.idle_timeout]" {
		t.Errorf("a restart is asked for %s; want server.idle_timeout alone", got)
	}
}

// TestPoolsKeepTheFilesOrder: the first pool that fits serves, also if it is the newer one.
func TestPoolsKeepTheFilesOrder(t *testing.T) {
	f := sims(t, 2, vllmsim.Config{})
	var last, both strings.Builder
	addPool(&last, "last", "prefixaware", "*", f.URLs()[0])
	addPool(&both, "first", "prefixaware", "sim", f.URLs()[1])
	const server = "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n"
	r := start(t, server+last.String(), 1)
	write(t, r.file, server+both.String()+last.String())
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if p := r.do("POST", "/v1/completions", short, "X-Warmpath-Explain", "1").header.Get("X-Warmpath-Pool"); p != "first" {
		t.Errorf("pool %s serves; want the first of the file", p)
	}
}

// TestRefusedReloadsLeaveNothingBehind: modules that were loaded for a file that is refused are freed.
func TestRefusedReloadsLeaveNothingBehind(t *testing.T) {
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, settings("prefixaware", f.URLs()[0]), 1)
	var toml strings.Builder
	toml.WriteString(settings("prefixaware", f.URLs()[0]))
	toml.WriteString("[strategies.mine]\npath = \"none.wasm\"\n")
	text := strings.Replace(toml.String(), `models = ["*"]`, `models = ["sim"]`, 1)
	toml.Reset()
	addPool(&toml, "second", "mine", "*", f.URLs()[1])
	write(t, r.file, text+toml.String())
	refuse := func(n int) {
		for range n {
			if r.Reload() == nil {
				t.Fatal("accepted")
			}
		}
	}
	refuse(2)
	before := runtime.NumGoroutine()
	refuse(10)
	eventually(t, "no goroutine more for each of ten", func() bool { return runtime.NumGoroutine() < before+5 })
}

// TestRemovedPoolLeavesItsWorkersAlone: nobody asks a worker for its health that no pool has.
func TestRemovedPoolLeavesItsWorkersAlone(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	w := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprint(rw, `{"data":[{"id":"sim"}]}`)
	}))
	t.Cleanup(w.Close)
	r := start(t, settings("prefixaware", w.URL), 1)
	write(t, r.file, strings.Replace(settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), `name = "main"`, `name = "other"`, 1))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a second without a question", func() bool {
		before := asked.Load()
		time.Sleep(time.Second)
		return asked.Load() == before
	})
}

// TestANewPoolServesOnceItCan: until one of its workers is up, those of the old pools serve, and /ready stays 200.
func TestANewPoolServesOnceItCan(t *testing.T) {
	t.Parallel()
	slow := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			time.Sleep(500 * time.Millisecond)
		}
		fmt.Fprint(rw, `{"data":[{"id":"sim"}]}`)
	}))
	t.Cleanup(slow.Close)
	r := start(t, settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), 1)
	write(t, r.file, strings.Replace(settings("prefixaware", slow.URL), `name = "main"`, `name = "other"`, 1))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := r.readiness(); got.status != 200 || got.Pools[0].Name != "other" {
		t.Errorf("/ready: %+v; want 200 by the new pool", got)
	}
}
