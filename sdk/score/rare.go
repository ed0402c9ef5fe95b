package score

import (
	"math"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

// adjusted is what a worker with a weight has of n in flight per unit of it, and what one in slow start is taken to
// have.
func (c *request) adjusted(w *sdk.Worker, n float64) float64 {
	n = sdk.PerWeight(n, w)
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

// A tie looks for the row to choose among those that are equal to the one of the smallest score.
//
// Equal to it are the rows of which all that is known is no worse: as long a match to within a block, no more in
// flight, no more pending, no more work. Only what is learnt differs, by no more than its noise. Among them the fewest
// in flight wins, then the fewest sent lately, then the fewest ever sent, then the index.
type tie struct {
	request *request
	workers []sdk.Worker
	best    int     // row of the smallest score
	row     int     // the one to choose, of those that were entered
	work    float64 // most that an equal row has; 0 = not computed yet
}

// scan enters the rows whose keys are at most limit. It looks at eight keys together without a branch, for the reason
// that rank has none.
func (t *tie) scan(keys []uint64, limit uint64) {
	for ; len(keys) >= 8; keys = keys[8:] {
		k := keys[:8]
		far := (limit - k[0]) & (limit - k[1]) & (limit - k[2]) & (limit - k[3]) &
			(limit - k[4]) & (limit - k[5]) & (limit - k[6]) & (limit - k[7]) // negative if all are
		if far>>63 == 0 {
			t.each(k, limit)
		}
	}
	t.each(keys, limit)
}

// each is scan for a few keys.
func (t *tie) each(keys []uint64, limit uint64) {
	for _, k := range keys {
		if k <= limit {
			t.enter(int(k & rowMask))
		}
	}
}

// enter makes row i the one to choose if it is equal to the best, and before the one that was.
func (t *tie) enter(i int) {
	w, best := &t.workers[i], &t.workers[t.best]
	if !(w.Pending <= best.Pending) || w.Weight == 1 && best.Weight == 1 && w.InFlight > best.InFlight {
		return
	}
	d := held(w) - held(best)
	if d < -1 || d > 1 || sdk.PerWeight(float64(w.InFlight), w) > sdk.PerWeight(float64(best.InFlight), best) {
		return
	}
	if now := &t.workers[t.row]; !before(w, now) && (i >= t.row || before(now, w)) {
		return
	}
	if t.work == 0 { // last, as it costs most
		t.work = sameWork * t.request.work(t.workers[t.best:t.best+1])
	}
	if float64(t.request.work(t.workers[i:i+1])*best.Slow) <= float64(t.work*w.Slow) {
		t.row = i
	}
}

// work returns Y of one row: its score for a request in an empty fleet, less its wait.
func (c *request) work(row []sdk.Worker) float64 {
	alone, key := *c, [1]uint64{}
	alone.lambda, alone.tilt = 0, 0
	_, best := alone.rank(row, key[:])
	return math.Float64frombits(best[0]&^rowMask) - float64(2*row[0].Wait)
}

// held is the leading blocks of the prompt that w has, in all tiers.
func held(w *sdk.Worker) int64 {
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
