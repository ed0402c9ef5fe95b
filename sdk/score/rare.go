package score

import (
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

// adjusted is what a worker with a weight has in flight per unit of it, and what one in slow start is taken to have.
func (c *request) adjusted(w *sdk.Worker) float64 {
	n := sdk.PerWeight(float64(w.InFlight), w)
	if w.State&abi.RowSlowStart != 0 {
		n = float64(2*n) + c.flight + 2
	}
	return n
}

// tie returns the key, of those that share their score with best, whose worker has the fewest in flight, then the fewest
// sent, then the smallest index.
func (u *Rule) tie(best uint64, workers []sdk.Worker) uint64 {
	for _, k := range u.keys[:len(workers)] {
		if k>>rowBits == best>>rowBits && k != best && before(&workers[k&rowMask], &workers[best&rowMask]) {
			best = k
		}
	}
	return best
}

// before says whether w, of the same score as best, is better: fewest in flight, then fewest sent.
func before(w, best *sdk.Worker) bool {
	a, b := sdk.PerWeight(float64(w.InFlight), w), sdk.PerWeight(float64(best.InFlight), best)
	if a != b {
		return a < b
	}
	return sdk.PerWeight(float64(w.Sent), w) < sdk.PerWeight(float64(best.Sent), best)
}
