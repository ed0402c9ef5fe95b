package score

import (
	"math"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

// adjusted returns n in flight per unit of w's weight; for a worker in slow start twice that, the mean and two more.
func (c *request) adjusted(w *sdk.Worker, n float64) float64 {
	n = sdk.PerWeight(n, w)
	if w.State&abi.RowSlowStart != 0 {
		n = float64(2*n) + c.flight + 2
	}
	return n
}

// idles reports whether the worker joins, and has no prompt to compute. Work there delays no other request, so it has
// no price.
func idles(w *sdk.Worker) bool { return w.Joins() && w.PendingTokens == 0 }

// What makes rows equal to the one of the smallest score.
const (
	band     = .15  // of what it scores without price and tilt, more than its score: noise of what was learnt
	sameWork = 1.01 // times its work, both without their worker's speed
)

// far returns a bound on the keys of rows that are equal to the row of key best: the price is at most all of a score.
func far(best uint64) uint64 {
	return math.Float64bits((1+band)*math.Float64frombits(best&^rowMask)) | rowMask
}

// near returns the largest key of a row that is equal to the row of key best. It computes the best's work.
func (t *tie) near(best uint64) uint64 {
	work := t.request.work(t.workers[t.best : t.best+1])
	t.most = sameWork * work
	alone := float64(2*t.workers[t.best].Wait) + work
	return math.Float64bits(math.Float64frombits(best&^rowMask)+float64(band*alone)) | rowMask
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
	hasty   bool    // work is looked at later
	most    float64 // work that an equal row has, as near computes it, on a worker as slow as the best
}

// find enters the rows whose keys are at most limit: all of them if many is set, else some. It is costly to compute a
// row's work, so find first computes it for the chosen row alone, which nearly always has no more than the best. If it
// has more, find enters the rows again, and looks at the work of each.
func (t *tie) find(keys, some []uint64, many bool, limit uint64) {
	for _, hasty := range [...]bool{true, false} {
		t.hasty, t.row = hasty, t.best
		if many {
			t.scan(keys, limit)
		} else {
			t.each(some, limit)
		}
		if t.row == t.best || t.hasty && t.asLittle(t.row) {
			return
		}
	}
}

// scan enters the rows whose keys are at most limit: keys has one a row. It looks at four rows together without a
// branch, for the reason that rank has none. All rows are equal on an idle fleet, and all except a few come after the
// one to choose. When it entered each of them, a pick took 32 us at 256 workers. Now it takes 12.5 us
// (BenchmarkPick/idle).
func (t *tie) scan(keys []uint64, limit uint64) {
	turn, i := t.turn(), 0
	for ; i+4 <= len(keys); i += 4 {
		k, w := keys[i:i+4], t.workers[i:i+4]
		out := (limit - k[0] | later(&w[0], turn)) & (limit - k[1] | later(&w[1], turn)) &
			(limit - k[2] | later(&w[2], turn)) & (limit - k[3] | later(&w[3], turn)) // negative if all are
		if out>>63 == 0 {
			t.each(k, limit)
			turn = t.turn()
		}
	}
	t.each(keys[i:], limit)
}

// each is scan for a few keys.
func (t *tie) each(keys []uint64, limit uint64) {
	for _, k := range keys {
		if k <= limit {
			if i := int(k & rowMask); later(&t.workers[i], t.turn())>>63 == 0 {
				t.enter(i)
			}
		}
	}
}

// turn returns the order of the row to choose, as later compares it; the largest number if that row's weight is not 1.
func (t *tie) turn() uint64 {
	if w := &t.workers[t.row]; w.Weight == 1 {
		return order(w)
	}
	return 1<<63 - 1
}

// order is what before compares first, in one number: in flight, then sent lately, which is never negative.
func order(w *sdk.Worker) uint64 {
	return uint64(w.InFlight)<<31 | uint64(math.Float32bits(w.Lately)&(1<<31-1))
}

// later returns a negative number if w has weight 1 and certainly comes after a row of that turn.
func later(w *sdk.Worker, turn uint64) uint64 {
	other := uint64(math.Float32bits(w.Weight) ^ weightOne) // 0 = weight 1
	return (turn - order(w)) &^ -other
}

const weightOne = 0x3f800000 // the bits of float32(1)

// enter makes row i the one to choose if it is equal to the best, and before the one that was.
func (t *tie) enter(i int) {
	w, best := &t.workers[i], &t.workers[t.best]
	if w.Delay > best.Delay {
		return
	}
	if !(w.Pending <= best.Pending) || w.Weight == 1 && best.Weight == 1 && w.InFlight > best.InFlight {
		return
	}
	d := held(w) - held(best)
	if room := w.Room(); d < -1 || d > 1 || room < t.request.need && room < best.Room() {
		return
	}
	if sdk.PerWeight(float64(w.InFlight), w) > sdk.PerWeight(float64(best.InFlight), best) {
		return
	}
	if now := &t.workers[t.row]; !before(w, now) && (i >= t.row || before(now, w)) {
		return
	}
	if t.hasty || t.asLittle(i) {
		t.row = i
	}
}

// asLittle reports whether row i has no more work than an equal row may have.
func (t *tie) asLittle(i int) bool {
	w, best := &t.workers[i], &t.workers[t.best]
	return float64(t.request.work(t.workers[i:i+1])*best.Slow) <= float64(t.most*w.Slow)
}

// sound returns the sums of slowness and load over the rows in which they are numbers: one row without them must not
// spoil the others' score.
func sound(workers []sdk.Worker) (slow, load float64) {
	for i := range workers {
		if w := &workers[i]; w.Slow-w.Slow == 0 {
			slow += w.Slow
		}
		if w := &workers[i]; w.Load-w.Load == 0 {
			load += w.Load
		}
	}
	return slow, load
}

// held is the leading blocks of the prompt that w has, in all tiers.
func held(w *sdk.Worker) int64 {
	return int64(w.GPU) + int64(w.L1) + int64(w.L2)
}

// before reports whether w is to be chosen over another row that is equal to the best.
func before(w, other *sdk.Worker) bool {
	if a, b := sdk.PerWeight(float64(w.InFlight), w), sdk.PerWeight(float64(other.InFlight), other); a != b {
		return a < b
	}
	if a, b := sdk.PerWeight(float64(w.Lately), w), sdk.PerWeight(float64(other.Lately), other); a != b {
		return a < b
	}
	return sdk.PerWeight(float64(w.Sent), w) < sdk.PerWeight(float64(other.Sent), other)
}
