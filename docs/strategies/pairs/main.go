// Pairs chooses who writes the answer and who computes the prompt in one decision, in a pool with
// [pools.disaggregation]: the two that have the first token soonest and do the least harm. A worker that does both
// holds up the answers that it is writing for as long as the prompt takes; two cost the wait at the prefiller, and
// handover seconds. If the prefiller that it has named is gone, the host finds another one.
//
//	options = { handover = .05, each = .02 }
package main

import (
	"math"

	"github.com/warmpath/warmpath/sdk"
)

type pairs struct{ handover, each float64 }

func (s *pairs) Configure(o *sdk.Options) error {
	s.handover, s.each = o.Float("handover", .05), o.Float("each", .02)
	return nil
}

func (*pairs) Wants() sdk.Want { return sdk.WantPair }

func (s *pairs) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	p, elsewhere := -1, math.Inf(1)
	for i := range workers {
		if w := &workers[i]; !w.Decodes() && r.TTFT(w)+s.handover < elsewhere {
			p, elsewhere = i, r.TTFT(w)+s.handover
		}
	}
	alone := func(w *sdk.Worker) float64 { return r.TTFT(w) + r.Prefill(w)*float64(w.Running) }
	var k sdk.Ranking
	for i := range workers {
		if w := &workers[i]; w.Decodes() {
			k.Enter(i, w, min(alone(w), elsewhere)+s.each*float64(w.InFlight))
		}
	}
	d := k.Choose(r).Row()
	if d >= 0 && alone(&workers[d]) <= elsewhere {
		p = d
	}
	return r.Pair(d, p).Because(sdk.ReasonCost)
}

func init() { sdk.Register(&pairs{handover: .05, each: .02}) }

func main() {}
