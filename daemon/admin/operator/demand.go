package operator

import (
	"math"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// ofDemand has the demand of a pool in work, for a program that scales its workers.
var ofDemand = []reading[load]{
	gauge("pool_demand_seconds", "Worker-seconds of prefill that are asked of the pool and not done: W + N*P. W = sum "+
		"over its workers that are up of the prefill believed queued there; N = requests refused as no worker was up or all "+
		"were full, each counted e^(-age/30 s); P = mean prefill seconds of the requests that were sent, counted alike, 1 "+
		"if none was. Workers wanted = the larger of this / the seconds that a prompt may wait, and "+
		"warmpath_pool_workers_wanted.", poolLabels, func(l load) float64 { return l.demand }),
	gauge("pool_workers_wanted", "Workers that would have had a place for all requests: those that are up * all requests "+
		"/ those that were not refused as no worker was up or all were full, each counted e^(-age/30 s); at most four times "+
		"those that are up. Those that are up if none was refused, all of the pool if none is up.", poolLabels,
		func(l load) float64 { return float64(l.wanted) }),
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

// mostWanted bounds how many times the workers that are up are wanted: clients that repeat what was refused make the
// share of refusals larger than the load.
const mostWanted = 4

// wanted computes pool_workers_wanted. A single refusal is chance.
func wanted(up, all int, refused, came float64) int {
	switch {
	case up == 0:
		return all
	case refused < 1:
		return up
	}
	times := min(mostWanted, came/max(came-refused, came/mostWanted))
	return int(math.Ceil(float64(up) * times))
}

// load is what is asked of a pool, as in the metrics of ofDemand.
type load struct {
	demand float64
	wanted int
}

// load returns what is asked of a pool.
func (r *Recent) load(p *Pool, now time.Time) load {
	each, ok := p.Workers.Prefill(now)
	if !ok {
		each = 1
	}
	stats := p.Workers.Stats(now)
	refused, came := r.lacking(p.Name, now)
	return load{demand: demand(stats, refused, each), wanted: wanted(p.Workers.Up(now), len(stats), refused, came)}
}
