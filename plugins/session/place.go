package session

import (
	"github.com/warmpath/warmpath/sdk"
)

// hashed places a new session on the first worker, in the session's own order of them, that is under the bound.
func hashed(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	var k sdk.Ranking
	limit := bound * mean(workers)
	most := crowd * meanSessions(workers)
	edge := r.Edge(workers)
	first, highest := 0, uint64(0)
	for i := range workers {
		w := &workers[i]
		h := mix(r.Session ^ w.Key)
		if h > highest {
			first, highest = i, h
		}
		cost := 1 - float64(h>>11)/(1<<53) // in (0, 1]; 53 bits are exact in a float64
		switch {                           // after all that are under the bounds, still in the session's order
		case w.Room() < edge:
			cost += 8
		case load(w) >= 2*limit+4:
			cost += 6
		case sdk.PerWeight(float64(w.Sessions), w) >= most+1:
			cost += 4 // a worker that has just joined is to catch up, and is a little busier meanwhile
		case load(w) >= limit+1:
			cost += 2
		}
		k.Enter(i, w, cost)
	}
	d := k.Choose(r).Bind()
	if d.Row() == first {
		return d.Because(sdk.ReasonHash)
	}
	return d.Because(sdk.ReasonSpill)
}

// leastLoaded ranks the workers as the host does that shows the first least of them. One of these has room unless all
// do not: then the first that has it may have no row.
func leastLoaded(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	var k sdk.Ranking
	edge, packed := r.Edge(workers), 0
	for i := range workers {
		w := &workers[i]
		cost := load(w) + faint*sdk.PerWeight(float64(w.Lately), w)
		if w.Room() < edge {
			cost += full
			packed++
		}
		k.Enter(i, w, cost)
	}
	if r.LeftOut > 0 && packed >= least {
		return sdk.Decline
	}
	return k.Choose(r).Because(sdk.ReasonLeast)
}

// faint makes what was sent lately decide between workers that have as much in flight.
const faint = 1e-9

// least is how many workers with the fewest in flight have a row at least.
const least = 16

// full puts a worker whose KV cache is full after all others: what comes there pushes another request out.
const full = 1e6

// load is what w has in flight per unit of weight; fourfold, and two more, in slow start.
func load(w *sdk.Worker) float64 {
	n := sdk.PerWeight(float64(w.InFlight), w)
	if sdk.SlowStart(w) {
		return 4*n + 2
	}
	return n
}

// mean is the fleet's requests in flight per unit of weight.
func mean(workers []sdk.Worker) float64 {
	return perWeight(workers, func(w *sdk.Worker) uint32 { return w.InFlight })
}

// meanSessions is the same of the sessions that live there.
func meanSessions(workers []sdk.Worker) float64 {
	return perWeight(workers, func(w *sdk.Worker) uint32 { return w.Sessions })
}

func perWeight(workers []sdk.Worker, count func(*sdk.Worker) uint32) float64 {
	all, weight := uint64(0), float64(0)
	for i := range workers {
		w := &workers[i]
		all += uint64(count(w))
		if w.Weight > 0 {
			weight += float64(w.Weight)
		} else {
			weight++
		}
	}
	return float64(all) / weight
}

// mix is the finalizer of MurmurHash3 with Stafford's constants (mix 13): each input bit changes half of the output's.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
