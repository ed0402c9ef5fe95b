// Phases keeps long prompts away from the workers that generate: a request whose prefill takes longer than slow seconds
// goes to a worker with role=prefill, all others elsewhere, so that it does not hold up their streams. A strategy sends
// a request to one worker: the same worker computes the prompt and generates the answer.
//
//	options = { slow = .5 }
package main

import "github.com/warmpath/warmpath/sdk"

type phases struct{ slow float64 }

func (s *phases) Configure(o *sdk.Options) error {
	s.slow = o.Float("slow", .5)
	return nil
}

func (s *phases) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	prefill := r.Labeled("role", "prefill")
	var short, long sdk.Ranking
	for i := range workers {
		w := &workers[i]
		if w.Labels&prefill != 0 {
			long.Enter(i, w, r.TTFT(w))
		} else if r.Prefill(w) <= s.slow {
			short.Enter(i, w, r.TTFT(w))
		}
	}
	if d := short.Choose(r); d != sdk.Decline {
		return d.Because(sdk.ReasonCost)
	}
	return long.Choose(r).Because(sdk.ReasonCost)
}

func init() { sdk.Register(&phases{slow: .5}) }

func main() {}
