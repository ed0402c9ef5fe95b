package limit

import (
	"math"
	"time"
)

// share is what this router may let in of a limit that it shares with others. Its zero value is that of a router
// without others.
type share struct {
	lent    float64 // of the limit, to this router
	heard   time.Time
	routers int  // that share the limits, this one too; 0 = as 1
	wants   bool // it has refused a request since its last message
}

// silence is for how long what was lent holds without an answer. Then a router gives out an equal part.
const silence = 2500 * time.Millisecond

// of returns how much may be taken here of a limit.
func (s *share) of(limit float64, at time.Time) float64 {
	if s.heard.IsZero() || at.Sub(s.heard) > silence {
		return limit / float64(max(1, s.routers))
	}
	return min(limit, s.lent)
}

// places is of for a limit on requests in number. It is rounded up: else no router would take the last one.
func (s *share) places(limit int, at time.Time) float64 {
	return math.Ceil(s.of(float64(limit), at) - 1e-6)
}
