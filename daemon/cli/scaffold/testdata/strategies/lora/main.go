// Lora: where the adapter runs, unless the queue there takes longer than loading it elsewhere.
package main

import "github.com/warmpath/warmpath/sdk"

const (
	runs = sdk.ReasonOwn + iota
	loads
	base
)

type lora struct{ handicap float64 } // further seconds of a load

func (s *lora) Configure(o *sdk.Options) error {
	s.handicap = o.Float("handicap", 0)
	return nil
}

func (*lora) Reasons() []string {
	return []string{"the adapter runs there", "loads the adapter", "no adapter"}
}

func (s *lora) cost(r *sdk.Request, w *sdk.Worker) float64 {
	load := w.AdapterLoad()
	if load > 0 {
		load += s.handicap
	}
	return r.TTFT(w) + load + .01*float64(w.InFlight)
}

func (s *lora) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	var k sdk.Ranking
	for i := range workers {
		k.Enter(i, &workers[i], s.cost(r, &workers[i]))
	}
	d := k.Choose(r)
	switch w := &workers[d.Row()]; {
	case w.Adapter():
		return d.Because(runs)
	case w.AdapterLoad() > 0:
		return d.Because(loads)
	}
	return d.Because(base)
}

func init() { sdk.Register(&lora{}) }

func main() {}
