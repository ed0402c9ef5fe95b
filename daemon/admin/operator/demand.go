package operator

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// ofDemand has the demand of a pool in work, for a program that scales its workers.
var ofDemand = []reading[float64]{
	gauge("pool_demand_seconds", "Worker-seconds of prefill that are asked of the pool and not done: W + N*P. W = sum "+
		"over its workers that are up of the prefill believed queued there; N = requests refused as no worker was up or all "+
		"were full, each counted e^(-age/30 s); P = mean prefill seconds of the requests that were sent, counted alike, 1 "+
		"if none was. Workers wanted = this / the seconds that a prompt may wait.", poolLabels,
		func(seconds float64) float64 { return seconds }),
}

// demand computes pool_demand_seconds. each is the mean prefill of a request, in seconds.
func demand(stats []worker.Stats, refused, each float64) float64 {
	queued := 0.
	for i := range stats {
		if w := &stats[i]; w.Up {
			queued += w.Wait
		}
	}
	return queued + refused*each
}

// Demand returns how many worker-seconds of prefill a pool lacks, as in pool_demand_seconds.
func (r *Recent) Demand(p *Pool, now time.Time) float64 {
	each, ok := p.Workers.Prefill(now)
	if !ok {
		each = 1
	}
	return demand(p.Workers.Stats(now), r.lacking(p.Name, now), each)
}
