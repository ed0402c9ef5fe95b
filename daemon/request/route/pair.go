package route

import (
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// wantsPairs reports whether the strategy wants to see prefillers, so that it can name one.
func wantsPairs(s *host.Strategy) bool { return s != nil && s.Notices().Wants()&abi.WantPair != 0 }

// addPrefillers adds the rows of those that may compute the prompt behind those that may answer.
func addPrefillers(c *Choice) {
	q, f := c.query(), &c.fleet
	q.Fence, q.Count, q.Tied = c.ask.Prefillers, nil, false
	n, _ := f.add(c.pool.Workers, q)
	f.frame.Header.Prefillers = uint32(n)
}

// namedFor returns the id of the worker that a strategy has named for a prompt, which comes first for it; "" = none.
func namedFor(a *Ask) string {
	if a.Leg != Prefill {
		return ""
	}
	return a.Named
}

// notePair notes the worker that the strategy has named to compute the prompt. What it names where no prompt is split
// has no effect.
func notePair(c *Choice) {
	c.pair = nil
	if i := c.result.Pair - 1; i >= 0 && len(c.ask.Prefillers) > 0 {
		c.pair = c.fleet.workers[i]
	}
}

// Paired returns who computes the prompt if a worker answers, as the strategy has named it; nil = that worker itself.
// It returns false if the host decides: the strategy has named nobody, or not the worker that answers.
func Paired(c *Choice, to Target) (by *worker.Worker, named bool) {
	switch {
	case c.pair == nil, c.order.by == byHost, c.stay.silent && c.binds(), int(c.fleet.frame.Header.Bound) == to.row:
		return nil, false
	case c.result.Pair-1 == c.result.Row, c.pair == to.Worker:
		return nil, true
	}
	return c.pair, true
}

// pairID returns the id of the worker that the strategy has named to compute the prompt, "" if it has named none.
func (d *decision) pairID() string {
	if d.pair == nil {
		return ""
	}
	return d.pair.ID()
}
