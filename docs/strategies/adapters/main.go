// Adapters sends a request for a LoRA adapter to a worker that has it loaded, else to one with room for it, unless the
// queue there takes longer than loading it elsewhere.
package main

import (
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

type adapters struct{}

func (adapters) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	var k sdk.Ranking
	for i := range workers {
		w := &workers[i]
		cost := r.TTFT(w)
		if !w.Adapter() {
			cost++ // a second to load it
		}
		if !w.Adapter() && w.State&abi.RowAdaptersFull != 0 {
			cost++ // and another is thrown out
		}
		k.Enter(i, w, cost)
	}
	return k.Choose(r).Because(sdk.ReasonCost)
}

func init() { sdk.Register(adapters{}) }

func main() {}
