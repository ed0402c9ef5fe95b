package route

import (
	"time"

	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// verdictOf returns the verdict of the strategy that was asked.
func verdictOf(c *Choice) Verdict {
	if c.result.Reject != nil {
		return Rejected
	}
	if isHeld(c) {
		return Held
	}
	return Chosen
}

// isHeld reports whether the request waits for a better worker. If its time for that is over, or its pool has no queue,
// the host's fallback has chosen, and that is the reason.
func isHeld(c *Choice) bool {
	r, q := &c.result, &c.ask.Queue
	if r.Hold == 0 {
		return false
	}
	if q.Waited < min(r.Hold, q.Longest) {
		return true
	}
	r.Fallback = "hold"
	return false
}

// HoldFor returns for how long the request may wait in all, after the verdict Held.
func HoldFor(c *Choice) time.Duration { return min(c.result.Hold, c.ask.Queue.Longest) }

// Classify asks the strategy that a request goes to how urgent it is, before it waits. ok is false if the strategy has
// no opinion.
func Classify(c *Choice) (class int, weight float64, ok bool) {
	id := c.stay.name.ID
	if c.stay.state == apart {
		id = ""
	}
	s := c.pool.canaries.serving(&c.pool.Strategy, &c.ask, id).Strategy()
	if s == nil || s.Notices().Wants()&abi.WantClassify == 0 {
		return 0, 0, false
	}
	var f host.Frame
	f.Reset()
	describe(&f, c.pool, &c.ask, c.stay.name.Tenant, id)
	f.Header.PromptTokens = uint32(c.size.all)
	return s.Classify(&f)
}
