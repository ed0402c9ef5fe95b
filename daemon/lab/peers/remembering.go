package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// remembering is the shared part of the rules that remember what they sent where. It notes the match of each worker for
// the request at hand.
type remembering struct {
	memory  memory
	matches []int // blocks, by worker
	kv      []int // tokens of KV cache, by worker, as of the last choice
	next    int   // where the search among equals begins
}

// look fills the matches.
func (r *remembering) look(q *trial.Request, fleet []trial.View) {
	r.matches, r.kv = r.matches[:0], r.kv[:0]
	for i := range fleet {
		n := 0
		if fleet[i].Up {
			n = r.memory.match(i, q.Chain)
		}
		r.matches = append(r.matches, n)
		r.kv = append(r.kv, fleet[i].KVTokens)
	}
}

// share returns the part of the prompt that a worker is remembered to hold, 0 to 1.
func (r *remembering) share(worker int, q *trial.Request) float64 {
	return float64(r.matches[worker]*q.BlockTokens) / float64(max(1, q.Prompt))
}

// longest returns the worker that is up with the longest match, the first of equals, and the blocks; -1 if none is up.
func (r *remembering) longest(fleet []trial.View) (worker, blocks int) {
	worker = smallest(fleet, 0, func(i int) float64 { return -float64(r.matches[i]) })
	if worker >= 0 {
		blocks = r.matches[worker]
	}
	return worker, blocks
}

// fewest returns the worker that is up with the fewest requests in flight, of equals the next in turn.
func (r *remembering) fewest(fleet []trial.View) int {
	return r.turn(smallest(fleet, r.next, func(i int) float64 { return float64(fleet[i].InFlight) }))
}

// turn has the next search among equals begin behind the worker chosen.
func (r *remembering) turn(chosen int) int {
	r.next = chosen + 1
	return chosen
}

// Sent implements trial.Chooser.
func (r *remembering) Sent(now time.Duration, q *trial.Request, worker int) {
	r.memory.touch(now, worker, q.Chain, q, r.kv[worker])
}

// First implements trial.Chooser.
func (*remembering) First(time.Duration, *trial.Request, int) {}

// End implements trial.Chooser.
func (r *remembering) End(now time.Duration, q *trial.Request, worker int, e *trial.End) {
	if r.memory.Answers && e.Chain != nil {
		r.memory.touch(now, worker, e.Chain, q, r.kv[worker])
	}
}

// Down implements trial.Chooser.
func (r *remembering) Down(_ time.Duration, worker int) { r.memory.lose(worker) }

// Up implements trial.Chooser.
func (*remembering) Up(time.Duration, int) {}

// remember returns the shared part of a rule with such a memory.
func remember(m Memory) remembering { return remembering{memory: memory{Memory: m}} }
