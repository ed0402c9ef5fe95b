// Rendezvous sends each model, and so each LoRA adapter, where a hash says, whatever the load: what prefixaware is
// measured beside.
package main

import "github.com/warmpath/warmpath/sdk"

type rendezvous struct{}

func (rendezvous) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	var k sdk.Ranking
	for i := range workers {
		k.Enter(i, &workers[i], -sdk.Place(r.Model, &workers[i]))
	}
	return k.Choose(r).Because(sdk.ReasonHash)
}

func init() { sdk.Register(rendezvous{}) }

func main() {}
