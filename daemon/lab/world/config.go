package world

import (
	"fmt"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// Config is one run.
type Config struct {
	Engine  engine.Config // of each worker; Changes, Shared and ShowEvery are set here
	Workers int           // at most maxWorkers
	GPUs    float64       // of each worker
	Shared  int           // tokens of the tier that all workers share; 0 = none

	Gaps bool // the times between tokens are measured

	Fates   []Fate
	Sync    Sync
	Load    traffic.Load
	Routers int           // default 1
	Split   Split         // how requests come to several
	History time.Duration // on the way from one of several to the others: what it did; 0 = they share nothing
	Scrape  time.Duration // between two pages of metrics of a worker; default 5 s
	Seed    uint64        // of the split
}

// Sync is how a trainer gives the workers new weights: it pauses all of them, replaces the weights, resets the caches,
// and lets them go on. Requests that run wait meanwhile, and are computed again (vLLM's pause of mode keep, and
// reset_prefix_cache with reset_running_requests).
type Sync struct {
	Every time.Duration // from the beginning of one to that of the next; 0 = there is none
	Takes time.Duration
}

// Fate is what befalls a worker.
type Fate struct {
	At       time.Duration
	Worker   int
	Kind     FateKind
	Slowness float64       // of Slows
	Within   time.Duration // of Leaves: the routers know of it so long before
	Back     time.Duration // of Leaves: after which it comes again; 0 = it does not
}

// FateKind is the kind of a Fate.
type FateKind uint8

// The fates.
const (
	Dies   FateKind = iota // with all that it has
	Comes                  // with an empty cache: back, or for the first time if it is the worker's first fate
	Leaves                 // the routers know before, and its process ends when it has no request; then it may come again
	Slows                  // every step takes Slowness times as long from now on
)

// Split is how a request comes to one of several routers.
type Split uint8

// The splits.
const (
	AtRandom  Split = iota // by chance, each request
	BySession              // by a hash of the session
)

// The bounds of a run.
const (
	maxWorkers = 1024
	maxRouters = 64
	maxSlow    = 1e6 // slowness of a worker
)

func (c Config) complete() (Config, error) {
	c.Routers, c.History = max(1, c.Routers), max(0, c.History)
	if c.Scrape <= 0 {
		c.Scrape = 5 * time.Second
	}
	if c.Workers < 1 || c.Workers > maxWorkers || c.Routers > maxRouters {
		return c, fmt.Errorf("world: %d workers and %d routers; give 1 to %d and up to %d",
			c.Workers, c.Routers, maxWorkers, maxRouters)
	}
	for _, f := range c.Fates {
		sane := f.Kind != Slows || f.Slowness > 0 && f.Slowness <= maxSlow
		if f.Worker < 0 || f.Worker >= c.Workers || f.At < 0 || !sane {
			return c, fmt.Errorf("world: %+v; give a worker from 0 to %d, a time, and a slowness over 0 and up to %g", f,
				c.Workers-1, maxSlow)
		}
	}
	if c.Sync.Every < 0 || c.Sync.Takes < 0 || c.Sync.Every > 0 && c.Sync.Takes >= c.Sync.Every {
		return c, fmt.Errorf("world: a sync every %v that takes %v; give times from 0 on, the second one shorter",
			c.Sync.Every, c.Sync.Takes)
	}
	full, err := c.Engine.Complete()
	if err != nil {
		return c, err
	}
	c.Engine = full
	c.Engine.ShowEvery = 24 * time.Hour // nobody asks for the tokens between
	c.Engine.Shared = nil
	if c.Shared > 0 {
		c.Engine.Shared = engine.NewTier(c.Shared, full.ChunkTokens)
	}
	return c, nil
}

// isLate reports whether the worker comes after the beginning.
func (c *Config) isLate(worker int) bool {
	first := -1
	for i, f := range c.Fates {
		if f.Worker == worker && f.Kind != Slows && (first < 0 || f.At < c.Fates[first].At) {
			first = i
		}
	}
	return first >= 0 && c.Fates[first].Kind == Comes
}
