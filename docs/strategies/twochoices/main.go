// Twochoices draws two workers and takes the one with more KV memory left: the power of two choices. It needs no look
// at the whole fleet.
package main

import "github.com/warmpath/warmpath/sdk"

type twochoices struct{}

func (twochoices) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	a, b := r.Pick(len(workers)), r.Pick(len(workers))
	if workers[b].Room() > workers[a].Room() {
		a = b
	}
	return sdk.To(a).Because(sdk.ReasonLeast)
}

func init() { sdk.Register(twochoices{}) }

func main() {}
