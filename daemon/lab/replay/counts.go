package replay

import (
	"context"
	"fmt"
	"sync/atomic"
)

// counts is what the requests of a run are doing. The progress reads it while they run.
type counts struct {
	total int           // requests in the trace
	slots chan struct{} // an element for each open request; its capacity is the bound

	sent, begun, answered, failed atomic.Int64
	held                          atomic.Int64 // requests that had to wait for a slot
	peak                          atomic.Int64 // most open at once
}

func newCounts(total, maxInFlight int) *counts {
	return &counts{total: total, slots: make(chan struct{}, maxInFlight)}
}

// acquire waits for one of the places for open requests. It returns false if ctx ends first.
func (c *counts) acquire(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case c.slots <- struct{}{}:
	default:
		c.held.Add(1)
		select {
		case c.slots <- struct{}{}:
		case <-ctx.Done():
			return false
		}
	}
	for open, peak := int64(len(c.slots)), c.peak.Load(); open > peak; peak = c.peak.Load() {
		if c.peak.CompareAndSwap(peak, open) {
			break
		}
	}
	return true
}

// release gives a place back.
func (c *counts) release() { <-c.slots }

// inFlight returns the number of open requests.
func (c *counts) inFlight() int { return len(c.slots) }

// String returns the line that the progress writes.
func (c *counts) String() string {
	return fmt.Sprintf("%d of %d sent, %d answered, %d failed, %d in flight",
		c.sent.Load(), c.total, c.answered.Load(), c.failed.Load(), c.inFlight())
}
