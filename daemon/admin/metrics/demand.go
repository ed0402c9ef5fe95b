package metrics

import (
	"math"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// ofDemand has the demand of a pool in work, for a program that scales its workers.
var ofDemand = []reading[Load]{
	gauge("pool_demand_seconds", "Worker-seconds of prefill that are asked of the pool and not done: W + N*P. W = sum "+
		"over its workers that are up of the prefill believed queued there; N = requests that wait in the router, and "+
		"those refused as no worker was up or all were full, each counted e^(-age/30 s); P = mean prefill seconds of "+
		"the requests that were sent, counted alike, 1 if none was. Workers wanted = the larger of this / the seconds "+
		"that a prompt may wait, and warmpath_pool_workers_wanted.", poolLabels, func(l Load) float64 { return l.Demand }),
	gauge("pool_workers_wanted", "Workers that would have had a place for all requests: those that are up * all requests "+
		"/ those that were not refused as no worker was up or all were full, each counted e^(-age/30 s); at most four times "+
		"those that are up. What another worker would not have served, as for a session whose own one is full, is not "+
		"counted as refused. Those that are up if none was refused. If none is up, all of the pool, and 1 at least if a "+
		"request waits or was refused.", poolLabels,
		func(l Load) float64 { return float64(l.Wanted) }),
}

// ofRoles has the same of the workers of a role, in a pool with roles: prefillers and those that answer scale apart.
var ofRoles = []reading[RoleLoad]{
	gauge("role_demand_seconds", "warmpath_pool_demand_seconds of the workers with the role prefill, and of those that "+
		"answer (decode). N of prefill = prompts that were to have a prefiller and found none that is up and has room; of "+
		"decode = that of the pool.", roleLabels, func(l RoleLoad) float64 { return l.Demand }),
	gauge("role_busy_workers", "How many workers of the role would be in use if each was used in full: the sum over "+
		"those that are up of the largest of seconds of prefill that are sent there a second, the share of its KV cache "+
		"that is in use, and requests in flight / max_in_flight.", roleLabels,
		func(l RoleLoad) float64 { return l.Busy }),
	gauge("role_workers_up", "Workers of the role that get requests.", roleLabels,
		func(l RoleLoad) float64 { return float64(l.Up) }),
	gauge("role_workers_wanted", "warmpath_pool_workers_wanted of the workers of the role, where prompts that find no "+
		"prefiller count as refused ones of prefill.", roleLabels, func(l RoleLoad) float64 { return float64(l.Wanted) }),
}

// roleLabels are the labels of every metric of a role.
var roleLabels = []string{"pool", "role"}

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

// Load is what is asked of a pool, as in the metrics of ofDemand.
type Load struct {
	Demand float64
	Wanted int
	Roles  []RoleLoad // none in a pool without roles
}

// RoleLoad is what is asked of the workers of a role.
type RoleLoad struct {
	Role    string  `json:"role"` // prefill, or decode: those that answer
	Workers int     `json:"workers"`
	Up      int     `json:"up"`
	Demand  float64 `json:"demand_seconds"` // as role_demand_seconds
	Busy    float64 `json:"busy_workers"`   // as role_busy_workers
	Wanted  int     `json:"workers_wanted"` // as role_workers_wanted
}

// lack is how much of what came a role had no worker for, or no place.
type lack struct{ refused, waits, came float64 }

// wanted computes pool_workers_wanted for so many workers, of which some are up.
func (l lack) wanted(up, all int) int {
	if up == 0 {
		l.refused += l.waits
	}
	return wanted(up, all, l.refused, l.came)
}

// roleLoad computes what is asked of the workers of a role.
func roleLoad(role string, of []worker.Stats, l lack, each float64) RoleLoad {
	r := RoleLoad{Role: role, Workers: len(of), Demand: demand(of, l.refused+l.waits, each)}
	for i := range of {
		if of[i].Up {
			r.Up++
			r.Busy += of[i].InUse
		}
	}
	r.Wanted = l.wanted(r.Up, len(of))
	return r
}

// Load returns what is asked of a pool.
func (r *Recent) Load(p *readiness.Pool, now time.Time) Load {
	each, ok := p.Workers.Prefill(now)
	if !ok {
		each = 1
	}
	stats := p.Workers.Stats(now)
	answers, prompts := r.lacking(p.Name, now)
	answers.waits = float64(p.Waits())
	asked := Load{Demand: demand(stats, answers.refused+answers.waits, each),
		Wanted: answers.wanted(p.Workers.Up(now), len(stats))}
	if p.Pairing != nil {
		var prefill, decode []worker.Stats
		for i := range stats {
			if stats[i].Helps {
				prefill = append(prefill, stats[i])
			} else {
				decode = append(decode, stats[i])
			}
		}
		asked.Roles = []RoleLoad{roleLoad("prefill", prefill, prompts, each), roleLoad("decode", decode, answers, each)}
	}
	return asked
}
