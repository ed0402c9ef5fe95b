// Slo keeps the time to the first token that the client asks for in the header x-slo-ttft-ms: of the workers that
// should keep it, the request goes to the cheapest (price). If none should, it goes where it is answered first, and
// batch traffic, of a priority above 0, is turned away.
//
//	allow = ["headers:x-slo-ttft-ms"]
//	options = { ms = 500 }             # of requests without the header
package main

import (
	"strconv"

	"github.com/warmpath/warmpath/sdk"
)

type slo struct{ ms float64 }

func (s *slo) Configure(o *sdk.Options) error {
	s.ms = o.Float("ms", 500)
	return nil
}

func (s *slo) Reasons() []string { return []string{"cheapest in time", "none in time, the soonest"} }

func (s *slo) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	ms, err := strconv.ParseFloat(sdk.Header("x-slo-ttft-ms"), 64)
	if err != nil {
		ms = s.ms
	}
	var cheapest, soonest sdk.Ranking
	for i := range workers {
		seconds := r.TTFT(&workers[i])
		soonest.Enter(i, &workers[i], seconds)
		if seconds*1000 <= ms {
			cheapest.Enter(i, &workers[i], float64(workers[i].Price))
		}
	}
	if d := cheapest.Choose(r); d != sdk.Decline {
		return d.Because(sdk.ReasonOwn)
	}
	if r.Priority > 0 {
		return r.Reject(429, "no worker would begin the answer in time", 0)
	}
	return soonest.Choose(r).Because(sdk.ReasonOwn + 1)
}

func init() { sdk.Register(&slo{ms: 500}) }

func main() {}
