package route

import (
	"slices"

	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// The host offers no worker that is in slow start, or that has refused a request a moment ago, while other workers can
// take the request. But a strategy that confines requests to a few workers may have no use for the others. So if some
// worker that is up was not offered, and the strategy rejects, declines or confines the request, the host asks it once
// more with all workers that are up.

// misses reports whether the strategy may have decided so only because the host hid some workers from it.
func (c *Choice) misses() bool {
	r := &c.result
	if !c.fleet.count.Hidden || c.wide || c.stay.silent || c.stay.worker() != "" {
		return false
	}
	return r.Fallback == "" && r.Reject != nil || r.Fallback == "decline" || r.Flags&abi.FlagOnly != 0
}

// askWide asks the strategy once more. If the host's fallback chooses again, it offers the same workers as before. If
// the strategy had confined the request to a worker and still allows it, that worker stays first, to spare the others.
// askWide returns false as askStrategy does.
func (c *Choice) askWide() bool {
	shown, before := slices.Clone(c.fleet.workers), c.fleet.workers[c.order.first()]
	confined := c.result.Flags&abi.FlagOnly != 0
	c.wide = true
	defer func() { c.wide = false }()
	c.fillFleet("")
	if c.stay.free() {
		c.fleet.countSessions(c.pool.Sessions)
	}
	c.fillFrame()
	if !c.askStrategy() {
		return false
	}
	o := &c.order
	if c.result.Fallback != "" {
		o.rows = slices.DeleteFunc(o.rows, func(row int32) bool { return !slices.Contains(shown, c.fleet.workers[row]) })
	} else if !confined {
		return true
	}
	if row := slices.Index(c.fleet.workers, before); c.result.Reject == nil && slices.Index(o.rows, int32(row)) > 0 {
		o.putFirst(row)
		c.result.Row = row
		c.result.Pair, c.pair = 0, nil // which was that of another worker
	}
	return true
}

// verdictOf returns the verdict of the strategy that was asked.
func verdictOf(r *host.Result) Verdict {
	switch {
	case r.Reject != nil:
		return Rejected
	case r.Hold > 0:
		return Held
	}
	return Chosen
}

// endHold has the host's fallback decide on a request that the strategy holds for a better worker, if its time for that
// is over or its pool has no queue.
func (c *Choice) endHold() {
	if r, q := &c.result, &c.ask.Queue; r.Hold > 0 && q.Waited >= min(r.Hold, q.Longest) {
		c.result = c.strategy.EndHold(&c.fleet.frame, *r)
	}
}
