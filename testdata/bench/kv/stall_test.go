package main

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

// TestStall: neither EXISTS, nor a lease of what is nowhere, nor a request waits for an L2 that is stopped, flushed or killed. What waits for one would take
// half a second at the least, [kv_cache.l2] timeout; the limits are for a busy machine.
func TestStall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a daemon, and stops a Redis for two seconds")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no redis-server: apt-get install redis-server")
		}
		t.Skip("SKIPPED: there is no redis-server; apt-get install redis-server")
	}
	bin, err := rig.Build(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := measureStall(bin, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, l := range lines {
		if l.Most == 0 {
			continue
		}
		asked++
		t.Logf("%+v", l)
		if l.P99 > 250_000 {
			t.Errorf("%s: 99 of 100 take %.0f us", l.Name, l.P99)
		}
	}
	if asked != 20 {
		t.Errorf("%d figures of 5 phases", asked)
	}
}
