package operator

import (
	"math"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// ofDemand has the demand of a pool in work, for a program that scales its workers.
var ofDemand = []reading[load]{
	gauge("pool_demand_seconds", "Worker-seconds of prefill that are asked of the pool and not done: W + N*P. W = sum "+
		"over its workers that are up of the prefill believed queued there; N = requests that wait in the router, and "+
		"those refused as no worker was up or all were full, each counted e^(-age/30 s); P = mean prefill seconds of "+
		"the requests that were sent, counted alike, 1 if none was. Workers wanted = the larger of this / the seconds "+
		"that a prompt may wait, and warmpath_pool_workers_wanted.", poolLabels, func(l load) float64 { return l.demand }),
	gauge("pool_workers_wanted", "Workers that would have had a place for all requests: those that are up * all requests "+
		"/ those that were not refused as no worker was up or all were full, each counted e^(-age/30 s); at most four times "+
		"those that are up. Those that are up if none was refused. If none is up, all of the pool, and 1 at least if a "+
		"request waits or was refused.", poolLabels,
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

// wanted computes pool_workers_wanted. A single refusal is chance, unless there is nobody to serve.
func wanted(up, all int, refused, came float64) int {
	switch {
	case up == 0 && refused > lastRefusal:
		return max(1, all)
	case up == 0:
		return all
	case refused < 1:
		return up
	}
	times := min(mostWanted, came/max(came-refused, came/mostWanted))
	return int(math.Ceil(float64(up) * times))
}

// lastRefusal is what a single refusal counts for after a minute and a half: as long as a scaler that reads metrics may
// take to see it.
const lastRefusal = .05

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
	lacking, up := refused+float64(p.waits()), p.Workers.Up(now)
	if up == 0 {
		refused = lacking
	}
	return load{demand: demand(stats, lacking, each), wanted: wanted(up, len(stats), refused, came)}
}
