// Package roundrobin gives each worker its turn, blind to caches, load, weight and slow start.
//
// The turn is the request's number in its pool modulo the number of candidates. The host counts the number, so it is
// exact over all instances and over concurrent picks, and any run of requests with the same candidates is even to
// within one. When a worker goes or comes, the next run starts with the new set and is again even to within one.
// Of a large fleet the host shows the worker whose turn it is, and the next ones.
//
// Requests with different candidates must not share one number: two models that alternate strictly, each on its own two
// workers, would each see every other number and stay on one worker.
//
// # What lost
//
// A counter in the module is wrong as soon as there are two instances. The fewest sent is stale under concurrent picks,
// and floods a worker that was away until it has caught up with the others. Rotating the turn by a hash each round
// keeps mixed candidate sets from falling into step with one another, and makes a run that starts or ends within a
// round uneven by two.
package roundrobin

import "github.com/warmpath/warmpath/sdk"

// New returns the strategy.
func New() sdk.Strategy { return new(strategy) }

type strategy struct{}

// Wants asks for no row but those whose turn comes next.
func (*strategy) Wants() sdk.Want { return sdk.WantCandidates }

func (*strategy) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	n := len(workers)
	turn := int(r.Seq % uint64(n))
	if next := int(r.Next); next > 0 && next <= n {
		turn = next - 1
	}
	next := turn
	for range min(n-1, sdk.Alternatives) {
		next++
		if next == n {
			next = 0
		}
		r.Then(next)
	}
	return sdk.To(turn).Because(sdk.ReasonTurn)
}
