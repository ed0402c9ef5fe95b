// Bounded sends each user, by the header x-user, where a hash says, and past workers that have twice the mean in
// flight: consistent hashing with bounded loads. When a worker comes or goes, only its own users move.
//
//	allow = ["headers:x-user"]
package main

import "github.com/warmpath/warmpath/sdk"

type bounded struct{}

func (bounded) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	user, all := sdk.Hash(sdk.Header("x-user")), 1
	for i := range workers {
		all += int(workers[i].InFlight)
	}
	var k sdk.Ranking
	for i := range workers {
		w := &workers[i]
		cost := -sdk.Place(user, w)
		if int(w.InFlight)*len(workers) > 2*all {
			cost++
		}
		k.Enter(i, w, cost)
	}
	return k.Choose(r).Because(sdk.ReasonHash)
}

func init() { sdk.Register(bounded{}) }

func main() {}
