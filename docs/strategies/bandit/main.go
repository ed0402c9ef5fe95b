// Bandit learns how long each worker takes to its first token, prefers the fast ones, and sends one request in twenty
// somewhere by chance, so that it notices when another has become faster. A worker that it does not know yet comes
// first.
package main

import (
	"math"

	"github.com/warmpath/warmpath/sdk"
)

type bandit struct{}

func (bandit) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	if r.Chance(.05) {
		return sdk.To(r.Pick(len(workers)))
	}
	best, least := 0, math.Inf(1)
	for i := range workers {
		w := &workers[i]
		if cost := w.Own * float64(1+int64(w.InFlight)); cost < least {
			best, least = i, cost
		}
	}
	return sdk.To(best).Because(sdk.ReasonCost)
}

func (bandit) OnFirstToken(o *sdk.Outcome) {
	mean := sdk.Own(o.Key)
	if mean == 0 {
		mean = float64(o.TTFT)
	}
	_ = sdk.SetOwn(o.Key, mean+.1*(float64(o.TTFT)-mean)) // of a worker that has left there is nothing to learn
}

func init() { sdk.Register(bandit{}) }

func main() {}
