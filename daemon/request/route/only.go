package route

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// askForOthers asks the strategy who may take a request that its session's worker does not answer: a binding is
// honoured without asking, and a strategy may keep a request to some workers (abi.FlagOnly) or turn it away. For any
// other strategy the order stays as it is.
func (c *Choice) askForOthers() {
	f, o := &c.fleet.frame, &c.order
	c.unasked = false
	if o.pinned {
		return
	}
	rows := slices.Clone(o.rows) // they are the frame's, which the strategy writes into
	bound := f.Header.Bound
	f.Header.Bound = -1
	r := c.serving.Pick(f)
	f.Header.Bound = bound
	switch {
	case r.Reject != nil:
		o.fence(nil, &c.fleet)
		rows = rows[:o.next]
	case r.Flags&abi.FlagOnly != 0:
		o.fence(r.Order, &c.fleet)
		rows = append(rows[:o.next], slices.DeleteFunc(r.Order, func(row int32) bool {
			return slices.Contains(o.tried, c.fleet.workers[row])
		})...)
		o.named = len(rows)
	}
	o.rows = rows
}

// lacksOnly is Lacks for a request that the strategy keeps to some workers.
func (c *Choice) lacksOnly(at time.Time) Verdict {
	found := NoWorker
	for _, w := range c.order.only {
		if slices.Contains(c.order.tried, w) {
			continue
		}
		switch v := alone(c.pool.Workers.Standing(w.ID(), c.prompt.Model, c.ask.Fence, at)); v {
		case Chosen:
			return v
		case Full:
			found = v
		}
	}
	return found
}
