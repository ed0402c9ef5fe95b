package peers

import (
	"hash/fnv"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// deaf ignores what becomes of a request: for rules that keep no memory.
type deaf struct{}

func (deaf) Sent(time.Duration, *trial.Request, int)            {}
func (deaf) First(time.Duration, *trial.Request, int)           {}
func (deaf) End(time.Duration, *trial.Request, int, *trial.End) {}
func (deaf) Down(time.Duration, int)                            {}
func (deaf) Up(time.Duration, int)                              {}

// smallest returns the worker that is up with the smallest cost, -1 if none is. Of equals it is the first at or after
// from, in a circle, so that an idle fleet is gone round.
func smallest(fleet []trial.View, from int, cost func(i int) float64) int {
	best, least := -1, 0.
	for k := range fleet {
		i := (from + k) % len(fleet)
		if !fleet[i].Up {
			continue
		}
		if c := cost(i); best < 0 || c < least {
			best, least = i, c
		}
	}
	return best
}

// RoundRobin sends to the workers that are up in turn.
//
// Source: vllm-project/production-stack, src/vllm_router/routers/routing_logic.py, RoundRobinRouter (commit 008a23bd).
type RoundRobin struct {
	deaf
	next int
}

// Choose implements trial.Chooser.
func (r *RoundRobin) Choose(_ time.Duration, _ *trial.Request, fleet []trial.View) int {
	i := smallest(fleet, r.next, func(int) float64 { return 0 })
	r.next = i + 1
	return i
}

// LeastRequests sends to the worker with the fewest requests of this router's in flight; of equals to the next in turn.
// It is the rule of most load balancers ("least_conn" of nginx, "leastconn" of haproxy).
type LeastRequests struct {
	deaf
	next int
}

// Choose implements trial.Chooser.
func (r *LeastRequests) Choose(_ time.Duration, _ *trial.Request, fleet []trial.View) int {
	i := smallest(fleet, r.next, func(i int) float64 { return float64(fleet[i].InFlight) })
	r.next = i + 1
	return i
}

// Session sends all requests of a conversation to one worker, found on a hash ring of the workers that are up. A
// request without a session goes to the worker with the fewest requests a second.
//
// Source: vllm-project/production-stack, src/vllm_router/routers/routing_logic.py, SessionRouter (commit 008a23bd).
// Its ring is uhashring's; this one has as many points a worker. What is sent "a second" is its engine statistics'
// window of 60 s.
type Session struct {
	deaf
	rate rates
	ring []point
	up   []bool // when the ring was made
}

// A point of the ring belongs to the worker.
type point struct {
	hash   uint64
	worker int
}

const ringPoints = 160 // a worker: ketama's 40 digests of four points

// Choose implements trial.Chooser.
func (s *Session) Choose(now time.Duration, q *trial.Request, fleet []trial.View) int {
	if q.Session == 0 {
		return s.rate.least(now, fleet)
	}
	s.renew(fleet)
	return onRing(s.ring, hashOf(q.Session))
}

// Sent implements trial.Chooser.
func (s *Session) Sent(now time.Duration, _ *trial.Request, worker int) { s.rate.count(now, worker) }

func hashOf(v ...uint64) uint64 {
	h := fnv.New64a()
	for _, x := range v {
		var b [8]byte
		for i := range b {
			b[i] = byte(x >> (8 * i))
		}
		_, _ = h.Write(b[:])
	}
	x := h.Sum64() // FNV's high bits hardly move for short input: spread them
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
