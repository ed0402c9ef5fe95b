package worker

import (
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

// TestIdleWorkersOfAPool: the workers of a pool that is not small at which no request is may be asked less often, and what is
// known of them does not become old. The first request to one has it asked at once.
func TestIdleWorkersOfAPool(t *testing.T) {
	w := &watcher{}
	p := upPoolOf(Config{Workers: specs(smallPool + 1), Watcher: w})
	const rest = (smallPool + 1) * time.Second / 4
	f := func(what string, worker int, at float64, want time.Duration) {
		t.Helper()
		if got := p.Phase(p.fleet.workers[worker].number, p.after(at)).Rest; got != want {
			t.Errorf("%s: asked after %v; want %v", what, got, want)
		}
	}
	stale := func(at float64) bool { return p.rows(at)[0].State&abi.RowStale != 0 }
	f("no page yet", 0, 1, 0)
	p.scrape(0, Metrics{}, 2)
	p.scrape(1, Metrics{Running: 1}, 2)
	f("no request", 0, 3, rest)
	f("another's request", 1, 3, 0)
	if stale(500) {
		t.Error("the page of an idle worker is old")
	}
	w.calls = nil
	k := p.force(p.fleet.workers[0], Dispatch{}, 500)
	if !slices.Equal(w.calls, []string{"scrape 1", "check 1"}) {
		t.Errorf("its first request: %v; want its page and its health", w.calls)
	}
	if !stale(500) {
		t.Error("the page of a worker with a request stays new")
	}
	f("a request", 0, 501, 0)
	k.FirstByte(p.after(502))
	k.End(p.after(502), judge.Outcome{Kind: judge.Answered})
	f("which has ended", 0, 503, rest)
	p.scrape(0, Metrics{Asleep: true}, 504)
	f("asleep", 0, 505, 0)
	p.scrape(0, Metrics{}, 506)
	f("awake", 0, 507, rest)
	for range inARow[judge.Failed] {
		p.force(p.fleet.workers[0], Dispatch{}, 508).End(p.after(508), judge.Outcome{Kind: judge.Failed})
	}
	f("set aside", 0, 509, 0)
	small := upPool(t, smallPool)
	small.scrape(0, Metrics{}, 2)
	if got := small.Phase(small.fleet.workers[0].number, small.after(3)).Rest; got != 0 {
		t.Errorf("in a small pool: asked after %v", got)
	}
}
