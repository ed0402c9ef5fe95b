package subset

import (
	"cmp"
	"slices"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// Assign returns for each worker which routers use it. Each router uses size workers, or all if there are fewer.
// Routers and workers are named by their keys, each once.
//
// It is rendezvous hashing with bounded load. In each round a worker gets at most one more router: no worker has two
// before each has one. Within a round the pair of the greatest hash goes first, so that the result does not depend on
// the order of the arguments, and a router or worker more or less moves few pairs (TestFewMove).
func Assign(routers, workers []uint64, size int) [][]int {
	type pair struct {
		hash uint64
		r, w int
	}
	of, room := make([][]int, len(workers)), make([]int, len(routers))
	pairs := make([]pair, 0, len(routers)*len(workers))
	for r := range routers {
		room[r] = min(size, len(workers))
		for w := range workers {
			pairs = append(pairs, pair{worker.Rendezvous(routers[r], workers[w]), r, w})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.hash, a.hash), cmp.Compare(routers[a.r], routers[b.r]),
			cmp.Compare(workers[a.w], workers[b.w]))
	})
	for most := 1; len(pairs) > 0; most++ {
		pairs = slices.DeleteFunc(pairs, func(p pair) bool {
			if room[p.r] == 0 {
				return true
			}
			if len(of[p.w]) == most {
				return false
			}
			of[p.w] = append(of[p.w], p.r)
			room[p.r]--
			return true
		})
	}
	return of
}
