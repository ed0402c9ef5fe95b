package operator

import (
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// quiet is how long a count must stand still until what it counts is over.
const quiet = time.Minute

// The names of what is watched. That of a pool has the pool's name behind it.
const (
	spansLost  = "spans"
	linesLost  = "lines"
	shedsOf    = "sheds "    // requests refused, as all workers are full
	preemptsOf = "preempts " // requests that the workers' engines put back for want of KV
)

// trend is a count that only rises, from when it began to rise. Its zero value is one that does not.
type trend struct {
	value, base uint64
	began, rose time.Time // zero: it does not rise
}

// see takes the count as it is now, and reports whether a rise begins or ends with it.
func (t *trend) see(value uint64, now time.Time) (begins, ends bool) {
	switch rising := !t.began.IsZero(); {
	case value > t.value && !rising:
		t.base, t.began, t.rose = t.value, now, now
		begins = true
	case value > t.value:
		t.rose = now
	case rising && now.Sub(t.rose) >= quiet:
		t.began = time.Time{}
		ends = true
	}
	t.value = value
	return begins, ends
}

// grown returns by how much it has risen.
func (t *trend) grown() uint64 { return t.value - t.base }

// trends are the watched counts. It is safe for concurrent use.
type trends struct {
	mu  sync.Mutex // guards all
	all map[string]*trend
}

// see is [trend.see] of the count of that name, and returns the trend before an end took its beginning.
func (t *trends) see(name string, value uint64, now time.Time) (was trend, begins, ends bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[string]*trend{}
	}
	x := t.all[name]
	if x == nil {
		x = &trend{}
		t.all[name] = x
	}
	was = *x
	begins, ends = x.see(value, now)
	return was, begins, ends
}

// of returns the count of that name, and whether it rises.
func (t *trends) of(name string) (x trend, rising bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[name] == nil {
		return x, false
	}
	return *t.all[name], !t.all[name].began.IsZero()
}

// keep forgets the pools that are not there any more.
func (t *trends) keep(there map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.all, func(name string, _ *trend) bool {
		_, pool, ofPool := strings.Cut(name, " ")
		return ofPool && !there[pool]
	})
}

// tick looks at the counts, and logs when a pool begins to refuse requests, and when that is over.
func (t *trends) tick(c *Config, now time.Time, log *slog.Logger) {
	spans := c.Spans.Stats()
	t.see(spansLost, spans.Failed+spans.Full, now)
	t.see(linesLost, c.Process.Clients().LostLines, now)
	there := map[string]bool{}
	for _, p := range c.Process.Pools() {
		there[p.Name] = true
		t.shed(p.Name, c.Metrics.full.of(p.Name), now, log)
		t.see(preemptsOf+p.Name, preempts(p.Workers.Stats(now)), now)
	}
	t.keep(there)
}

// shed takes the count of the requests that a pool has refused as its workers were full.
func (t *trends) shed(pool string, refused uint64, now time.Time, log *slog.Logger) {
	was, begins, ends := t.see(shedsOf+pool, refused, now)
	switch {
	case begins:
		log.Warn("the pool refuses requests, as its workers are full: add workers, or raise max_in_flight", "pool", pool)
	case ends:
		log.Info("the pool has refused no request for a minute", "pool", pool, "refused", was.grown(),
			"for", was.rose.Sub(was.began).Round(time.Second))
	}
}

// preempts sums up how many requests the workers' engines have put back.
func preempts(all []worker.Stats) (n uint64) {
	for i := range all {
		n += all[i].Preempts
	}
	return n
}
