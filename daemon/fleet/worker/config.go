package worker

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Config configures a pool. Only Workers needs a value; a zero elsewhere means the default.
type Config struct {
	Workers []Spec // Update changes them

	HealthInterval time.Duration // the first back-off of a worker that fails; default 2 s
	ScrapeInterval time.Duration // metrics are stale after three of them; default 5 s
	SlowStart      time.Duration // of a worker that came back, from a tenth of its share to all of it; default 10 s

	// PrefillTokensPerSecond is the speed from which estimates start; the pool learns its error. Default 15,000.
	PrefillTokensPerSecond float64

	// DownGrace is how long the answers of a worker that went down may pause. After that the pool calls Dispatch.Holder.
	// Requests without output at a worker that fell silent have three times as long. Default 20 s.
	DownGrace time.Duration
	// PauseMax is for how long a worker may be paused before that is logged. Default 10 min.
	PauseMax time.Duration

	MaxInFlight int        // requests at a time at one worker; 0 = no limit
	MaxWait     float64    // seconds of prefill believed queued at a worker, above which others come first; 0 = no bound
	MaxKVUse    float64    // share of a worker's KV tokens, if they are known, for requests in flight; 0 = no bound
	Room        RoomHearer // nil = room is not announced
	RetryBudget float64    // repeats that MayRetry lets through, a share of requests, beside 10 a second; 0 = these alone
	Panic       bool       // while no worker is up, Snapshot offers all of them, as Panicked
	Adapters    Loading
	Holds       bool // requests wait in the router while no worker is up; else those for a paused worker wait there
	// Outside reports whether workers that are not of Workers may serve what a request wants, and has them added if so.
	// The request waits as for a worker that starts. The pool calls it with its lock held. nil = there are none.
	Outside func(Want) bool

	OwnTrials bool // the Watcher tries workers that hang, by Phase.Try; else a client's request does

	// New reads the fields below. Configure ignores them.
	Log     *slog.Logger // default: none
	Watcher Watcher      // watches the workers; default: no worker is watched
	// After calls f after d and passes f the time of that moment. The pool calls After with its lock held, so After must
	// not call f before it returns. nil means that no Holder is ever called.
	After func(d time.Duration, f func(now time.Time))

	Caches   Caches // of the workers; default: changes are not announced
	OnChange func() // something that is written to the log has changed; called without the pool's lock. nil = nothing
}

// Want is what a request wants of a worker and finds at none of the pool. It has an ID, or the others.
type Want struct {
	ID     string // where its session lives, or that is drained, without the rank
	Model  string // that no worker lists
	Longer int    // no worker lists Model for more tokens than this, too few for the request; 0 = it is not too long
	Fence  Fence  // that excludes all
}

// Loading is which LoRA adapters the router loads at workers that do not list them.
type Loading struct {
	Loads Loads // nil = none
	Max   int   // adapters at a worker at a time; 0 = no bound
}

// Loads knows which adapters the worker at a URL may be asked to load. The pool calls it with its lock held.
type Loads interface{ Loads(url, model string) bool }

// Caches receives changes of the workers' KV caches, by slot. The pool calls it without its lock.
type Caches interface {
	// Down means that the worker is down or removed, or that its slot is free again: its cache is gone.
	Down(slot uint32)
	// Restarted means that the worker runs in a new process, though no health check saw it down.
	Restarted(slot uint32)
	// Outdated means that the worker's cache was emptied and its events do not say so yet, or that somebody else has
	// brought it other weights, which is taken for the same.
	Outdated(slot uint32)
	// Resized passes a cache's capacity, when the worker is registered (0 = not known yet) and when it changes.
	Resized(slot uint32, tokens int)
}

// Watcher checks workers' health, tries those that hang, and reads models and metrics. It reports the results to the
// pool by the worker's number: Healthy, Silent, Ill, Dead, Unchecked, Tried, Listing, Listed, Unlisted, Scraped and
// Unscraped. The pool calls a Watcher with its lock held, so that the calls about one worker come in order. A Watcher
// must not call the pool before it returns.
type Watcher interface {
	Watch(id uint64, url, metrics string) // the worker is new; both URLs may hold credentials
	WatchHealth(id uint64)                // it was removed, and requests there may wait in vain: only its health matters
	Unwatch(id uint64)                    // its state can be dropped
	CheckSoon(id uint64)                  // a request failed there: its health is wanted before the interval is over
	ScrapeSoon(id uint64)                 // it gave a request up or lost it: its metrics may show a new process
	ListSoon(id uint64)                   // its list of models may be old: Listing comes before the list is read
}

// absent is the Watcher, Caches and RoomHearer of a pool that has none.
type absent struct{}

func (absent) Watch(uint64, string, string) {}
func (absent) WatchHealth(uint64)           {}
func (absent) Unwatch(uint64)               {}
func (absent) CheckSoon(uint64)             {}
func (absent) ScrapeSoon(uint64)            {}
func (absent) ListSoon(uint64)              {}
func (absent) Down(uint32)                  {}
func (absent) Restarted(uint32)             {}
func (absent) Outdated(uint32)              {}
func (absent) Resized(uint32, int)          {}
func (absent) MayHaveCome()                 {}

func (c Config) withDefaults() Config {
	c.HealthInterval = cmp.Or(c.HealthInterval, 2*time.Second)
	c.ScrapeInterval = cmp.Or(c.ScrapeInterval, 5*time.Second)
	c.SlowStart = cmp.Or(c.SlowStart, 10*time.Second)
	c.DownGrace = cmp.Or(c.DownGrace, 20*time.Second)
	c.PauseMax = cmp.Or(c.PauseMax, 10*time.Minute)
	c.PrefillTokensPerSecond = cmp.Or(c.PrefillTokensPerSecond, abi.PrefillTokensPerSecond)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Watcher == nil {
		c.Watcher = absent{}
	}
	if c.Caches == nil {
		c.Caches = absent{}
	}
	if c.OnChange == nil {
		c.OnChange = func() {}
	}
	if c.Room == nil {
		c.Room = absent{}
	}
	if c.After == nil {
		c.After = func(time.Duration, func(time.Time)) {}
	}
	return c
}

// settings is a Config in force, with the values computed from it. It is never changed, only replaced.
type settings struct {
	Config
	limits limits
	c1, c2 float64
}

func newSettings(c Config) *settings {
	c1 := 1 / c.PrefillTokensPerSecond
	l := limits{requests: c.MaxInFlight, wait: c.MaxWait, kv: c.MaxKVUse}
	return &settings{Config: c, limits: l, c1: c1, c2: 2 * c1 / abi.AttentionTokens}
}

// estimate returns P/m, the seconds of prefill on a worker of slowness 1 for a prompt of tokens, cached of which are
// cached. Worked, at 15,000 tokens a second: 15,000 tokens, none cached: 1.229 s; 14,000 of them cached: 0.0963 s.
func (s *settings) estimate(tokens, cached int) float64 {
	n := float64(max(1, tokens-cached))
	l := max(float64(tokens), n)
	return s.c1*n + s.c2*n*(l-n/2)
}
