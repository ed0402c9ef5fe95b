package peers

import (
	"cmp"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// renew rebuilds the ring when other workers are up.
func (s *Session) renew(fleet []trial.View) {
	same := len(s.up) == len(fleet)
	for i := range fleet {
		same = same && s.up[i] == fleet[i].Up
	}
	if same {
		return
	}
	s.up, s.ring = s.up[:0], s.ring[:0]
	for i := range fleet {
		s.up = append(s.up, fleet[i].Up)
		for p := range uint64(ringPoints) {
			if fleet[i].Up {
				s.ring = append(s.ring, point{hash: hashOf(uint64(i), p), worker: i})
			}
		}
	}
	slices.SortFunc(s.ring, func(a, b point) int { return cmp.Compare(a.hash, b.hash) })
}

// onRing returns the worker of the first point at or after hash; -1 if the ring is empty.
func onRing(ring []point, hash uint64) int {
	if len(ring) == 0 {
		return -1
	}
	i, _ := slices.BinarySearchFunc(ring, hash, func(p point, h uint64) int { return cmp.Compare(p.hash, h) })
	return ring[i%len(ring)].worker
}

// rates counts what was sent to each worker in the last rateWindow.
type rates struct {
	sent [][]time.Duration
}

const rateWindow = time.Minute

func (r *rates) count(now time.Duration, worker int) {
	for worker >= len(r.sent) {
		r.sent = append(r.sent, nil)
	}
	r.sent[worker] = append(r.sent[worker], now)
}

// least returns the worker that is up and was sent the fewest, the first of equals.
func (r *rates) least(now time.Duration, fleet []trial.View) int {
	return smallest(fleet, 0, func(i int) float64 {
		if i >= len(r.sent) {
			return 0
		}
		for len(r.sent[i]) > 0 && r.sent[i][0] < now-rateWindow {
			r.sent[i] = r.sent[i][1:]
		}
		return float64(len(r.sent[i]))
	})
}
