// Generations weighs time against money on workers of two generations, as gen=new and gen=old: a second until the first
// token costs as much as a second of prefill on an old worker. So short prompts go to the old ones, and long prompts to
// the new ones, which are faster and dearer.
//
//	options = { dearer = 2.5 }         # what a new worker costs, an old one being 1
package main

import "github.com/warmpath/warmpath/sdk"

type generations struct{ dearer float64 }

func (s *generations) Configure(o *sdk.Options) error {
	s.dearer = o.Float("dearer", 2.5)
	return nil
}

func (s *generations) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	newer := r.Labeled("gen", "new")
	var k sdk.Ranking
	for i := range workers {
		w, price := &workers[i], 1.
		if w.Labels&newer != 0 {
			price = s.dearer
		}
		k.Enter(i, w, r.TTFT(w)+price*r.Prefill(w))
	}
	return k.Choose(r).Because(sdk.ReasonCost)
}

func init() { sdk.Register(&generations{dearer: 2.5}) }

func main() {}
