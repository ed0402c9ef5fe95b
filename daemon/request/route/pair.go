package route

import "github.com/warmpath/warmpath/daemon/fleet/worker"

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
