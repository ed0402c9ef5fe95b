package served

import (
	"time"

	"github.com/warmpath/warmpath/cache/tier"
)

// epoch is the time of day at which simulated runs begin.
var epoch = time.Unix(1_800_000_000, 0)

// Kept is the store of a run's strategy, which all routers of the run share, on their clock. It is a daemon's own
// store, with its bounds. Not safe for concurrent use.
type Kept struct {
	now   time.Time
	store *tier.Local
}

// Bounds of what a strategy keeps, as a daemon has them (TestAStrategyKeepsAsMuch).
const (
	keptKeys  = 10_000
	keptBytes = 8 << 20
)

// NewKept makes an empty store for one run.
func NewKept() (*Kept, error) {
	k := &Kept{now: epoch}
	s, err := tier.New(tier.Config{MaxBytes: 2 * keptBytes, Clock: func() time.Time { return k.now }})
	if err != nil {
		return nil, err
	}
	k.store = s.Local(keptKeys, keptBytes)
	return k, nil
}

// at moves the clock.
func (k *Kept) at(now time.Time) {
	if k != nil && now.After(k.now) {
		k.now = now
	}
}
