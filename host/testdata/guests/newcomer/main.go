// A complete strategy: the worker with the fewest requests in flight, then the next fewest. Build it with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w -buildid=' -o newcomer.wasm .
package main

import "github.com/warmpath/warmpath/sdk"

type newcomer struct{}

func (newcomer) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	var k sdk.Ranking
	for i := range workers {
		k.Enter(i, &workers[i], float64(workers[i].InFlight))
	}
	return k.Choose(r).Because(sdk.ReasonLeast)
}

func init() { sdk.Register(newcomer{}) }

func main() {}
