package score

import (
	"math"

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

// What makes rows equal to the one of the smallest score.
const (
	band     = 1.15 // times its score: noise of what was learnt
	sameWork = 1.01 // times its work, both without their worker's speed
)

// near is the largest key that a row equal to that of key best has.
func near(best uint64) uint64 {
	return math.Float64bits(band*math.Float64frombits(best&^rowMask)) | rowMask
}

// gather moves the keys that are at most limit to the front and returns them, perhaps with some that are no score. It
// has no branch, for the reason that rank has none.
func gather(keys []uint64, limit uint64) []uint64 {
	n := 0
	for _, k := range keys {
		keys[n] = k
		n += 1 - int((limit-k)>>63)
	}
	return keys[:n]
}

// tie returns the row to choose where others' keys are at most limit, which is near that of row b, the smallest. keys
// hold these at least.
//
// Equal to b are the rows of which all that is known is no worse: as long a match to within a block, no more in flight,
// no more pending, no more work. Only what is learnt differs, by no more than its noise. Among them the fewest in
// flight wins, then the fewest sent lately, then the fewest ever sent, then the index.
func (c *request) tie(b int, limit uint64, keys []uint64, workers []sdk.Worker, v View) int {
	best, row := &workers[b], b
	match, flight, work := held(best, v), sdk.PerWeight(float64(best.InFlight), best), 0.
	for _, k := range keys {
		if k > limit {
			continue
		}
		i := int(k & rowMask)
		w := &workers[i]
		if !(w.Pending <= best.Pending) || sdk.PerWeight(float64(w.InFlight), w) > flight {
			continue
		}
		if d := held(w, v) - match; d < -1 || d > 1 || !before(w, &workers[row]) && (i >= row || before(&workers[row], w)) {
			continue
		}
		if work == 0 { // last, as it costs most
			work = sameWork * c.work(workers[b:b+1], v)
		}
		if float64(c.work(workers[i:i+1], v)*best.Slow) <= float64(work*w.Slow) {
			row = i
		}
	}
	return row
}

// work returns Y of one row: its score for a request in an empty fleet, less its wait.
func (c *request) work(row []sdk.Worker, v View) float64 {
	alone, key := *c, [1]uint64{}
	alone.lambda, alone.halfFlight = 0, 0
	_, best := alone.rank(row, v, key[:])
	return math.Float64frombits(best[0]&^rowMask) - float64(2*row[0].Wait)
}

// held is the leading blocks of the prompt that w has, as v counts them.
func held(w *sdk.Worker, v View) int64 {
	if v == Predicted {
		return int64(w.Predicted)
	}
	return int64(w.GPU) + int64(w.L1) + int64(w.L2)
}

// before says whether w is to be chosen over another row that is equal to the best.
func before(w, other *sdk.Worker) bool {
	if a, b := sdk.PerWeight(float64(w.InFlight), w), sdk.PerWeight(float64(other.InFlight), other); a != b {
		return a < b
	}
	if a, b := sdk.PerWeight(float64(w.Lately), w), sdk.PerWeight(float64(other.Lately), other); a != b {
		return a < b
	}
	return sdk.PerWeight(float64(w.Sent), w) < sdk.PerWeight(float64(other.Sent), other)
}
