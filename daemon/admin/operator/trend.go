package operator

import (
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/request/limit"
)

// quiet is how long a counter must not change until its problem counts as over.
const quiet = time.Minute

// The names of the watched counters. That of a pool has the pool's name behind it; that of a key at a limit has the
// limit, a space and the key; that of a strategy the pool, a space and the strategy.
const (
	spansLost  = "spans"
	linesLost  = "lines"
	shedsOf    = "sheds "    // requests refused, as all workers are full
	preemptsOf = "preempts " // requests that the workers' engines put back for want of KV
	limitOf    = "limit "
	longOf     = "long "    // requests that alone need more tokens than their key may take in a minute
	rejectsOf  = "rejects " // requests that a strategy turned away
	failsOf    = "fails "   // requests that a strategy failed on
)

// trend is a count that only rises, from when it began to rise. Its zero value is one that does not.
type trend struct {
	value, base uint64
	began, rose time.Time // zero: it does not rise
}

// see takes the present count, and reports whether a rise begins or ends now.
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

// keep deletes the pools and keys that no longer exist.
func (t *trends) keep(there map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.all, func(name string, _ *trend) bool {
		return !there[name] && strings.Contains(name, " ")
	})
}

// tick looks at the counts, and logs when a pool begins to refuse requests, and when that is over.
func (t *trends) tick(c *Config, now time.Time, log *slog.Logger) {
	spans := c.Spans.Stats()
	t.see(spansLost, spans.Failed+spans.Full, now)
	t.see(linesLost, c.Process.Clients().LostLines, now)
	there := map[string]bool{}
	for _, p := range c.Process.Pools() {
		there[shedsOf+p.Name] = true
		t.shed(p.Name, c.Metrics.Full(p.Name), now, log)
		for _, s := range p.Strategies() {
			name := p.Name + " " + s.Name()
			there[rejectsOf+name], there[failsOf+name] = true, true
			t.see(rejectsOf+name, c.Metrics.Rejected(p.Name, s.Name()), now)
			t.see(failsOf+name, failures(s.Stats().Fallbacks), now)
		}
		there[preemptsOf+p.Name] = true
		t.see(preemptsOf+p.Name, p.Workers.Counts().Preempts, now)
	}
	for _, k := range c.Limits.Counts(now) {
		there[longOf+k.Key] = true
		t.see(longOf+k.Key, k.Used.Long, now)
		for by, n := range k.Used.Over {
			name := limitOf + limit.By(by).String()
			there[name+" "+k.Key] = true
			t.over(name, k.Key, n, now, log)
		}
	}
	t.keep(there)
}

// failures sums up the fallbacks for which a strategy is to blame.
func failures(fallbacks map[string]uint64) (n uint64) {
	for _, why := range [...]string{"trap", "fuel", "time", "bad_index", "memory"} {
		n += fallbacks[why]
	}
	return n
}

// over takes the count of the requests of a key that were refused for a limit.
func (t *trends) over(name, key string, refused uint64, now time.Time, log *slog.Logger) {
	was, begins, ends := t.see(name+" "+key, refused, now)
	by := strings.TrimPrefix(name, limitOf)
	switch {
	case begins:
		log.Warn("requests of a key get 429 for its limit: raise the limit, or see what its clients do",
			"key", key, "limit", by)
	case ends:
		log.Info("no request of the key has been refused for its limit for a minute", "key", key, "limit", by,
			"refused", was.grown(), "for", was.rose.Sub(was.began).Round(time.Second))
	}
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
