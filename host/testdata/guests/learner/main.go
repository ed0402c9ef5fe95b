// A strategy that uses what ABI 1.2 brought to learn: a number for each worker, many values of the store in one call,
// and the local time.
package main

import (
	"math"
	"strconv"

	"github.com/warmpath/warmpath/sdk"
)

type learner struct {
	mode    string // bandit, store or clock
	explore float64
	watched uint64 // key of a worker
	zone    *sdk.Zone
	keys    []string
	batch   sdk.KVBatch
}

func (s *learner) Configure(o *sdk.Options) error {
	s.mode, s.explore = o.String("mode", "bandit"), o.Float("explore", .05)
	s.watched, s.zone = uint64(o.Int("watched", 0)), o.Zone("timezone", "Europe/Berlin")
	for i := range o.Int("keys", 0) {
		s.keys = append(s.keys, "worker-"+strconv.Itoa(i))
	}
	return nil
}

func (s *learner) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	switch s.mode {
	case "store":
		return s.byStore()
	case "clock":
		c := s.zone.At(r.Now)
		return sdk.To(0).Because(sdk.Reason(c.Weekday*10000 + c.Hour*100 + c.Minute))
	}
	if r.Chance(s.explore) {
		return sdk.To(r.Pick(len(workers)))
	}
	best, least := 0, math.Inf(1)
	for i := range workers {
		w := &workers[i]
		if cost := w.Own * float64(1+int64(w.InFlight)); cost < least {
			best, least = i, cost
		}
	}
	return sdk.To(best).Because(sdk.ReasonCost)
}

// byStore takes the worker whose value in the store is the longest.
func (s *learner) byStore() sdk.Decision {
	values, err := s.batch.Get(s.keys...)
	if err != nil {
		return sdk.Decline
	}
	best := 0
	for i, v := range values {
		if len(v) > len(values[best]) {
			best = i
		}
	}
	return sdk.To(best)
}

func (s *learner) OnTick(now int64) { _ = sdk.SetOwn(s.watched, float64(now)) }

func (s *learner) OnFirstToken(o *sdk.Outcome) {
	mean := sdk.Own(o.Key)
	if mean == 0 {
		mean = float64(o.TTFT)
	}
	_ = sdk.SetOwn(o.Key, mean+.1*(float64(o.TTFT)-mean))
}

func init() { sdk.Register(new(learner)) }

func main() {}
