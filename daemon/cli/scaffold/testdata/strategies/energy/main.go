// Energy: seconds to the first token, and joules by the label watts=N of the worker, weighed by an option.
package main

import (
	"strconv"

	"github.com/warmpath/warmpath/sdk"
)

type energy struct{ perKilojoule float64 } // seconds that a kilojoule is worth

func (s *energy) Configure(o *sdk.Options) error {
	s.perKilojoule = o.Float("per_kilojoule", .05)
	return nil
}

func (*energy) Reasons() []string { return []string{"least seconds and joules"} }

func (s *energy) cost(r *sdk.Request, w *sdk.Worker) float64 {
	watts, err := strconv.ParseFloat(r.Label(w, "watts"), 64)
	if err != nil {
		watts = 700
	}
	prefill := r.Prefill(w)
	return w.Wait + prefill + s.perKilojoule*watts*prefill/1000 + .01*float64(w.InFlight)
}

func (s *energy) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	var k sdk.Ranking
	for i := range workers {
		k.Enter(i, &workers[i], s.cost(r, &workers[i]))
	}
	return k.Choose(r).Because(sdk.ReasonOwn)
}

func init() { sdk.Register(&energy{}) }

func main() {}
