package daemon

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// lines are those of an access log by the request's id.
func lines(t *testing.T, path string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, one := range logged(t, path) {
		all[fmt.Sprint(one["id"])] = one
	}
	return all
}

// A canary serves what its header or its share of the sessions says, and a session stays with one strategy; a shadow
// sees all of it, answers nowhere, and the log says where it would have chosen another worker.
func TestCanaryAndShadow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "access.log")
	r := start(t, withServer(settings("roundrobin", sims(t, 2, vllmsim.Config{}).URLs()...),
		fmt.Sprintf("access_log = %q", path))+`
[[pools.canary]]
strategy = "prefixaware"
header = "X-Canary=1"
[[pools.canary]]
strategy = "session"
percent = 50
[[pools.shadow]]
strategy = "kvaware"
`, 2)
	ask := func(id string, header ...string) {
		t.Helper()
		header = append(header, "X-Request-Id", id)
		if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"`+strings.Repeat("x", 400)+`","max_tokens":1}`,
			header...); s.status != 200 {
			t.Fatalf("%d %s", s.status, s.body)
		}
	}
	const sessions, each = 40, 3
	for i := range 20 {
		ask(fmt.Sprint("canary-", i), "X-Canary", "1")
	}
	for i := range sessions * each {
		ask(fmt.Sprint("s-", i), "X-Session-Id", fmt.Sprint("session-", i%sessions))
	}
	var shadows []operator.PoolShadows
	eventually(t, "the shadow has seen all", func() bool {
		b := do(t, "GET", "http://"+r.AdminAddr()+"/api/v1/shadows", "").body
		if err := json.Unmarshal([]byte(b), &shadows); err != nil {
			t.Fatal(err)
		}
		return len(shadows) == 1 && shadows[0].Shadows[0].Seen == 20+sessions*each
	})
	s := shadows[0].Shadows[0]
	if s.Strategy != "kvaware" || s.Agreed == s.Seen || s.Agreed == 0 || s.Failed > 0 || s.Fuel == 0 || s.Held == 0 {
		t.Errorf("%+v", s)
	}
	eventually(t, "the log has all lines", func() bool { return len(logged(t, path)) == 20+sessions*each })
	judgeLog(t, lines(t, path), sessions)
}

// judgeLog holds the lines of an access log to who should have decided.
func judgeLog(t *testing.T, log map[string]map[string]any, sessions int) {
	t.Helper()
	of, count, differ := map[string]string{}, map[string]int{}, 0
	for id, l := range log {
		strategy := fmt.Sprint(l["strategy"])
		if other, ok := l["shadow"]; ok {
			differ++
			if !strings.HasPrefix(fmt.Sprint(other), "kvaware=") {
				t.Errorf("shadow is %q", other)
			}
		}
		if strings.HasPrefix(id, "canary-") {
			if strategy != "prefixaware" {
				t.Errorf("%s is decided by %s", id, strategy)
			}
			continue
		}
		var n int
		fmt.Sscanf(id, "s-%d", &n)
		name := fmt.Sprint("session-", n%sessions)
		if was := of[name]; was != "" && was != strategy {
			t.Errorf("%s is decided by %s and by %s", name, was, strategy)
		}
		of[name] = strategy
		count[strategy]++
	}
	total := max(1, count["session"]+count["roundrobin"])
	if n := count["session"] * sessions / total; n < sessions/4 || n > 3*sessions/4 {
		t.Errorf("%d of %d sessions are the canary's: %v", n, sessions, count)
	}
	if differ == 0 {
		t.Error("no line says that the shadow would have chosen another worker")
	}
}

// Strategies are swapped under load: every request is answered, each by one version of one strategy.
func TestSwapsWithCanaryAndShadow(t *testing.T) {
	t.Parallel()
	text := settings("roundrobin", sims(t, 2, vllmsim.Config{}).URLs()...) + `
[[pools.canary]]
strategy = "session"
percent = 50
[[pools.shadow]]
strategy = "prefixaware"
`
	r := start(t, text, 2)
	var done atomic.Bool
	var all sync.WaitGroup
	var asked atomic.Int64
	for range 4 {
		all.Go(func() {
			for !done.Load() {
				s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`, "X-Warmpath-Explain", "1")
				if why := s.header.Get("X-Warmpath-Reason"); s.status != 200 || strings.HasPrefix(why, "fallback") {
					t.Errorf("%d, %s", s.status, why)
				}
				asked.Add(1)
			}
		})
	}
	for _, canary := range []string{"session", "session", "kvaware", "kvaware", "session", "session"} {
		write(t, r.file, strings.Replace(text, `strategy = "session"`, fmt.Sprintf("strategy = %q", canary), 1))
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		before := asked.Load()
		eventually(t, "requests after the swap", func() bool { return asked.Load() >= before+8 }) // a swap takes a moment only
	}
	done.Store(true)
	all.Wait()
	if asked.Load() < 20 {
		t.Errorf("%d requests beside the swaps", asked.Load())
	}
}

// TestACanaryThatIsSetAsideIsTold: the overview, of which status is made, names it beside a live strategy that is well.
func TestACanaryThatIsSetAsideIsTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trap.wasm")
	module(t, "trap.wat", file)
	r := start(t, settings("roundrobin", sims(t, 5, vllmsim.Config{}).URLs()...)+fmt.Sprintf(`
[[pools.canary]]
strategy = "mine"
header = "X-Canary=1"
[strategies.mine]
path = %q
`, file), 5)
	aside := func() map[string]string {
		var o operator.Overview
		if code, text := r.decided("/api/v1/overview", &o); code != 200 || len(o.Pools) != 1 || o.Pools[0].Quarantine {
			t.Fatalf("%d %s", code, text)
		}
		return o.Pools[0].Aside
	}
	if got := aside(); len(got) != 0 {
		t.Errorf("before any request %v are set aside", got)
	}
	eventually(t, "mine is set aside", func() bool { // a request that finds no instance ready is no failure
		r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`, "X-Canary", "1")
		return strings.Contains(aside()["mine"], "unreachable")
	})
}
