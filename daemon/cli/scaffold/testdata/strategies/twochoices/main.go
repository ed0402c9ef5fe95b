// Two choices by the time to the first token: of two drawn by chance, the one that answers sooner.
package main

import "github.com/warmpath/warmpath/sdk"

type twochoices struct{ each float64 } // seconds that a request in flight counts for

func (s *twochoices) Configure(o *sdk.Options) error {
	s.each = o.Float("each", .01)
	return nil
}

func (*twochoices) Reasons() []string { return []string{"the better of two"} }

func (s *twochoices) cost(r *sdk.Request, w *sdk.Worker) float64 {
	return r.TTFT(w) + s.each*float64(w.InFlight)
}

func (s *twochoices) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	a, b := r.Pick(len(workers)), r.Pick(len(workers))
	if s.cost(r, &workers[b]) < s.cost(r, &workers[a]) {
		a, b = b, a
	}
	if a != b {
		r.Then(b)
	}
	return sdk.To(a).Because(sdk.ReasonOwn)
}

func init() { sdk.Register(&twochoices{}) }

func main() {}
