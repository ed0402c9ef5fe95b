package operator

import (
	"time"

	"github.com/warmpath/warmpath/daemon/worker"
)

// ofDemand has the demand of a pool in work, for a program that scales its workers.
var ofDemand = []reading[float64]{
	gauge("pool_demand_seconds", "Worker-seconds of prefill that are asked of the pool and not done: W + N*P. W = sum "+
		"over its workers that are up of the prefill believed queued there; N = requests refused as no worker was up or all "+
		"were full, each counted e^(-age/30 s); P = mean prefill seconds of the requests that were sent, counted alike, 1 "+
		"if none was. Workers wanted = this / the seconds that a prompt may wait.", poolLabels,
		func(seconds float64) float64 { return seconds }),
}

// demand computes pool_demand_seconds. A worker's Load is the seconds of prefill sent to it per second, over 30 s.
func demand(stats []worker.Stats, refused, served float64) float64 {
	queued, sent := 0., 0.
	for i := range stats {
		if w := &stats[i]; w.Up {
			queued += w.Wait
			sent += w.Load * fallTime.Seconds()
		}
	}
	each := 1.
	if served >= 0.5 && sent > 0 {
		each = sent / served
	}
	return queued + refused*each
}

// Demand returns how many worker-seconds of prefill a pool lacks, as in pool_demand_seconds.
func (r *Recent) Demand(p *Pool, now time.Time) float64 {
	refused, served := r.lacking(p.Name, now)
	return demand(p.Workers.Stats(now), refused, served)
}
