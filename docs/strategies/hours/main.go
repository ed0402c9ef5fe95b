// Hours uses the rented workers, with the label rented=yes, on working days from 8 to 18 alone, and at other times only
// if all others have work for a minute.
//
//	options = { zone = "Europe/Berlin" }
package main

import "github.com/warmpath/warmpath/sdk"

type hours struct{ zone *sdk.Zone }

func (s *hours) Configure(o *sdk.Options) error {
	s.zone = o.Zone("zone", "+00:00")
	return nil
}

func (s *hours) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	t, rented := s.zone.At(r.Now), r.Labeled("rented", "yes")
	open := t.Weekday%6 != 0 && t.Hour >= 8 && t.Hour < 18
	var k sdk.Ranking
	for i := range workers {
		w := &workers[i]
		cost := r.TTFT(w)
		if w.Labels&rented != 0 && !open {
			cost += 60
		}
		k.Enter(i, w, cost)
	}
	return k.Choose(r).Because(sdk.ReasonCost)
}

func init() { sdk.Register(&hours{zone: new(sdk.Zone)}) }

func main() {}
