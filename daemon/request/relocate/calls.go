package relocate

import (
	"maps"
	"sync"
	"time"
)

// Calls are hand-overs that one router asks others for, by worker: until when they last; the zero time ends one. It is
// safe for concurrent use.
type Calls struct {
	mu  sync.Mutex // guards all
	all map[string]time.Time
}

// mostCalls bounds the hand-overs that nobody has taken: without other routers nobody does.
const mostCalls = 1024

// Add adds a hand-over, in place of one of the same worker.
func (c *Calls) Add(worker string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]time.Time{}
	}
	if _, has := c.all[worker]; has || len(c.all) < mostCalls {
		c.all[worker] = until
	}
}

// Take returns the hand-overs that were added since the last call.
func (c *Calls) Take() map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := maps.Clone(c.all)
	clear(c.all)
	return taken
}
