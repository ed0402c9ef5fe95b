// Arms compares two kinds of workers: a part of the users, by session or else by API key, goes to those with the label
// arm=b, all others elsewhere, and stays there unless that arm is down or full. Within an arm the host's own score
// decides.
//
//	options = { part = .1 }
package main

import "github.com/warmpath/warmpath/sdk"

type arms struct{ part float64 }

func (s *arms) Configure(o *sdk.Options) error {
	s.part = o.Float("part", .1)
	return nil
}

func (*arms) Wants() sdk.Want { return sdk.WantCost }

func (s *arms) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	user := r.Session
	if user == 0 {
		user = r.Caller
	}
	b, inB := r.Labeled("arm", "b"), sdk.Place(user, &sdk.Worker{}) < s.part
	var k sdk.Ranking
	for i := range workers {
		if w := &workers[i]; inB == (w.Labels&b != 0) {
			k.Enter(i, w, w.Cost)
		}
	}
	return k.Choose(r).Because(sdk.ReasonHash)
}

func init() { sdk.Register(&arms{part: .1}) }

func main() {}
