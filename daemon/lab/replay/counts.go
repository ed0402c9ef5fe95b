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
	peak                          int          // most open at once; by the arrival loop alone
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
	c.peak = max(c.peak, len(c.slots))
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
