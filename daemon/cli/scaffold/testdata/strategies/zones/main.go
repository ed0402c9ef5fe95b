// Zones: workers with the label zone=ZONE first, those of others where they begin spill seconds sooner.
package main

import "github.com/warmpath/warmpath/sdk"

type zones struct {
	zone  string
	spill float64
}

func (s *zones) Configure(o *sdk.Options) error {
	s.zone, s.spill = o.String("zone", ""), o.Float("spill", .25)
	return nil
}

func (*zones) Reasons() []string { return []string{"in the zone", "spilt to another zone"} }

func (s *zones) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	near := r.Labeled("zone", s.zone)
	var k sdk.Ranking
	for i := range workers {
		w := &workers[i]
		cost := r.TTFT(w) + .01*float64(w.InFlight)
		if w.Labels&near == 0 {
			cost += s.spill
		}
		k.Enter(i, w, cost)
	}
	d := k.Choose(r)
	if workers[d.Row()].Labels&near == 0 {
		return d.Because(sdk.ReasonOwn + 1)
	}
	return d.Because(sdk.ReasonOwn)
}

func init() { sdk.Register(&zones{}) }

func main() {}
