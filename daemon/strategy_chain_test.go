package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// A filter of the gallery before the strategy that orders keeps each key to its own workers, over reloads that change the
// chain, under an activated strategy and a canary, and while its worker is down.
func TestAChainOfStrategies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "tenants.wasm")
	c := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", file, "../docs/strategies/tenants")
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write(t, filepath.Join(dir, "admin.token"), adminToken)
	f := sims(t, 3, vllmsim.Config{Speed: 100})
	keys := tenants(t, "explain = true")
	pool := func(chain, more string) string {
		text := strings.Replace(settings("prefixaware"), `strategy = "prefixaware"`, "strategy = "+chain+"\nslow_start = \"1s\"", 1)
		text = strings.Replace(text, "[server]\n", fmt.Sprintf("[server]\nadmin_token_file = %q\nstrategies_dir = %q\n",
			filepath.Join(dir, "admin.token"), dir), 1)
		for i, u := range f.URLs() {
			text += fmt.Sprintf("[[pools.workers]]\nurl = %q\nid = \"w%d\"\nlabels = { for = %q }\n", u, i, []string{"alice", "bob", "bob"}[i])
		}
		return text + more + keys
	}
	r := start(t, pool(`["tenants", "prefixaware"]`, ""), 3)
	ask := func(who, session string) seen {
		t.Helper()
		s := r.as(who, "POST", "/v1/completions", `{"model":"sim","prompt":"a few words of `+who+`","max_tokens":1}`,
			"X-Warmpath-Explain", "1", "X-Session-Id", session)
		if to := s.header.Get("X-Warmpath-Worker"); s.status == 200 && (to == "w0") != (who == "alice") {
			t.Errorf("%s is served by %s: %s", who, to, s.header.Get("X-Warmpath-Filters"))
		}
		return s
	}
	serves := func(by, filters string) {
		t.Helper()
		s := ask("alice", "")
		if got := s.header.Get("X-Warmpath-Strategy"); s.status != 200 || got != by || s.header.Get("X-Warmpath-Filters") != filters {
			t.Errorf("%d by %s, %q; want by %s, %q: %s", s.status, got, s.header.Get("X-Warmpath-Filters"), by, filters, s.body)
		}
	}
	serves("prefixaware", "tenants left w0 of 3")
	var clients sync.WaitGroup
	done := make(chan struct{})
	for i := range 4 {
		clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				if s := ask([]string{"alice", "bob"}[i%2], fmt.Sprint("session ", n%5)); s.status != 200 {
					t.Errorf("%d %s", s.status, s.body)
				}
			}
		})
	}
	reload := func(chain, more string) error {
		write(t, r.file, pool(chain, more))
		return r.Reload()
	}
	for i, chain := range []string{`["tenants", "roundrobin"]`, `"tenants"`, `["tenants", "session"]`, `["tenants", "prefixaware"]`} {
		if err := reload(chain, ""); err != nil {
			t.Fatal(i, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if s := r.admin("PUT", "/api/v1/pools/main/strategy", `{"strategy":"roundrobin"}`); s.status != 200 || !strings.Contains(s.body, `"in_place_of":"prefixaware"`) {
		t.Errorf("%d %s", s.status, s.body)
	}
	serves("roundrobin", "tenants left w0 of 3")
	if s := r.admin("PUT", "/api/v1/pools/main/strategy", `{"strategy":"tenants"}`); s.status != 409 || !strings.Contains(s.body, "filters in pool main already") {
		t.Errorf("%d %s", s.status, s.body)
	}
	if s := r.admin("GET", "/api/v1/strategies", ""); !strings.Contains(s.body, `"as":"filter"`) {
		t.Errorf("%s", s.body)
	}
	if s := r.admin("DELETE", "/api/v1/pools/main/strategy", ""); s.status != 200 {
		t.Errorf("%d %s", s.status, s.body)
	}
	if err := reload(`["tenants", "prefixaware"]`, "[[pools.canary]]\nstrategy = \"roundrobin\"\nkey = \"alice\"\n"); err != nil {
		t.Fatal(err)
	}
	serves("roundrobin", "tenants left w0 of 3")
	err := reload(`["prefixaware", "roundrobin"]`, "")
	if err == nil || !strings.Contains(err.Error(), "prefixaware filters nothing") || !strings.Contains(err.Error(), ":9: pools[0].strategy[0]") {
		t.Errorf("%v; want a chain without a filter to be refused, with its line", err)
	}
	close(done)
	clients.Wait()
	f[0].Close()
	eventually(t, "w0 is down", func() bool { return r.describe()[0].Up == 2 })
	if s := ask("alice", ""); s.status != 503 || !strings.Contains(s.body, `the strategy \"tenants\" leaves no worker`) {
		t.Errorf("%d %s", s.status, s.body)
	}
	if s := ask("bob", ""); s.status != 200 {
		t.Errorf("%d %s", s.status, s.body)
	}
}
