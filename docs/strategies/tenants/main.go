// Tenants gives each API key workers of its own, those with the label for=NAME OF THE KEY. A request spills over to a
// worker that is nobody's where it would begin so much sooner, and never to another key's: that is a filter, which
// holds for retries and sessions too, and turns away what the module fails on. Alone it also orders the workers. In
// strategy = ["tenants", "prefixaware"] it only filters, and needs no spill. [[keys]] workers is a fence without one.
//
//	options = { spill = .5 }           # seconds
package main

import "github.com/warmpath/warmpath/sdk"

type tenants struct{ spill float64 }

func (s *tenants) Configure(o *sdk.Options) error {
	s.spill = o.Float("spill", .5)
	return nil
}

func (s *tenants) Filter(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	own := r.Labeled("for", sdk.Caller())
	return r.Keep(workers, func(w *sdk.Worker) bool { return w.Labels&own != 0 || r.Label(w, "for") == "" })
}

func (s *tenants) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	own := r.Labeled("for", sdk.Caller())
	var k sdk.Ranking
	for i := range workers {
		cost := r.TTFT(&workers[i])
		if workers[i].Labels&own == 0 {
			cost += s.spill
		}
		k.Enter(i, &workers[i], cost)
	}
	return k.Choose(r).Because(sdk.ReasonCost)
}

func init() { sdk.Register(&tenants{spill: .5}) }

func main() {}
