// Package session keeps the requests of one session on one worker.
//
// A bound session goes to its worker. A new one is placed by rendezvous hashing of the session over the workers' ids,
// so that every router places it alike and a worker that leaves moves only its own sessions; it is then bound, so that
// it stays when workers come back. Bounded loads (Mirrokni, Thorup, Zadimoghaddam) keep a run of unlucky hashes from
// piling up: a worker takes a new session while it has fewer than 1.25 times the mean in flight, plus one, and fewer
// than 1.02 times the mean of the sessions that live, plus one: sleeping sessions have nothing in flight, and a worker
// that joins would otherwise stay behind for as long as they live. A request without a session goes to the fewest in
// flight, of several to the one that got the fewest lately.
//
// A worker whose KV cache is full for the request gets neither while another has room.
//
// In flight is counted per unit of weight. A worker in slow start takes new sessions up to a quarter of the bound:
// a session stays for long, and one worker that is just back must not collect them all.
package session

import "github.com/warmpath/warmpath/sdk"

// bound is the load, as a multiple of the mean, past which a worker gets no new sessions: near enough to the mean that
// no worker is a quarter busier than it, far enough that most sessions stay where every router would put them.
const bound = 1.25

// crowd is the same for live sessions, which are many, so that the mean is steady. It is close to 1: while two of seven
// workers start slowly, the others take all new sessions, and what they take beyond their mean stays for long.
const crowd = 1.02

// New returns the strategy.
func New() sdk.Strategy { return new(strategy) }

type strategy struct{}

// Wants asks for the rows of all only where a session is placed.
func (*strategy) Wants() sdk.Want { return sdk.WantCandidates | sdk.WantSessions }

func (*strategy) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	if b := int(r.Bound); b >= 0 && b < len(workers) {
		return sdk.To(b).Because(sdk.ReasonSession)
	}
	if r.Session == 0 {
		return leastLoaded(r, workers)
	}
	return hashed(r, workers)
}
