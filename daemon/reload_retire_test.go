package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestCloseAwaitsRemovedPools: Close returns when a pool that a reload removed is closed too, and not with its strategy
// and its goroutines still about.
func TestCloseAwaitsRemovedPools(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	both := settings("prefixaware", f[0].URL())
	both = strings.Replace(both, "[[pools]]", fmt.Sprintf("[[pools]]\nname = \"gone\"\nmodels = [\"gone\"]\nworkers = [{ url = %q }]\n[[pools]]",
		f[1].URL()), 1)
	r := start(t, both, 2)
	busy := make(chan struct{})
	for _, p := range r.state.Load().pools {
		if p.name == "gone" {
			p.running.Go(func() { <-busy })
		}
	}
	write(t, r.file, settings("prefixaware", f[0].URL()))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- r.stop() }()
	select {
	case <-closed:
		t.Error("the daemon is closed, and a pool of it runs")
	case <-time.After(time.Second):
	}
	close(busy)
	_ = r.stop() // waits for the end
}
