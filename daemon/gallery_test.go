package daemon

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// galleryWorkers are what the strategies of docs/strategies look for, by worker.
var galleryWorkers = []string{
	`labels = { for = "acme", gen = "new", arm = "b" }` + "\ncost = 3.0\n",
	`labels = { gen = "old", role = "prefill" }` + "\ncost = 1.0\n",
	`labels = { for = "other", gen = "old", rented = "yes" }` + "\ncost = 2.0\n",
}

// Each strategy of the gallery goes live in a daemon that runs, and decides its requests in the sandbox.
func TestGallery(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "a-long-secret")
	f := sims(t, len(galleryWorkers), vllmsim.Config{Speed: 100})
	pool := func(strategy string) string {
		text := settings(strategy) + "max_wait_seconds = 60.0\n"
		for i, u := range f.URLs() {
			text += fmt.Sprintf("[[pools.workers]]\nurl = %q\nid = \"w%d\"\n%s", u, i+1, galleryWorkers[i])
		}
		return text + fmt.Sprintf("[[keys]]\nname = \"acme\"\nfile = %q\nexplain = true\n", secret)
	}
	r := start(t, pool("prefixaware"), len(galleryWorkers))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go r.Watch(ctx)
	for _, g := range []struct{ name, settings, header, value, worker, reason string }{
		{"slo", `allow = ["headers:x-slo-ttft-ms"]`, "X-Slo-Ttft-Ms", "60000", "w2", "cheapest in time"},
		{"generations", "", "", "", "", "least cost"},
		{"tenants", "", "", "", "w1", "least cost"},
		{"twochoices", "", "", "", "", "fewest in flight"},
		{"bounded", `allow = ["headers:x-user"]`, "X-User", "ann", "", "session hash"},
		{"bandit", "", "", "", "", ""},
		{"phases", "options = { slow = 0.000001 }", "", "", "w2", "least cost"},
		{"adapters", "", "", "", "", "least cost"},
		{"hours", `options = { zone = "Europe/Berlin" }`, "", "", "", "least cost"},
		{"arms", "options = { part = 1.0 }", "", "", "w1", "session hash"},
	} {
		file := filepath.Join(filepath.Dir(r.file), g.name+".wasm")
		c := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", file,
			"../docs/strategies/"+g.name)
		c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		write(t, r.file, pool(g.name)+fmt.Sprintf("[strategies.%s]\npath = %q\n%s\n", g.name, file, g.settings))
		eventually(t, g.name+" serves", func() bool { return r.strategy() == g.name })
		for i := range 5 {
			body := fmt.Sprintf(`{"model":"sim","prompt":"request %d of a few words, so that it has some blocks","max_tokens":2}`, i)
			s := r.do("POST", "/v1/completions", body, "Authorization", "Bearer a-long-secret", "X-Warmpath-Explain", "1", cmp.Or(g.header, "X-None"), g.value)
			by, to, why := s.header.Get("X-Warmpath-Strategy"), s.header.Get("X-Warmpath-Worker"), s.header.Get("X-Warmpath-Reason")
			if s.status != 200 || by != g.name || g.worker != "" && to != g.worker || g.reason != "" && why != g.reason {
				t.Errorf("%s: status %d, by %q to %s for %q; want %s for %q: %.200s", g.name, s.status, by, to, why, g.worker,
					g.reason, s.body)
			}
		}
	}
}
