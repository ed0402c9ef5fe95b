package route

import (
	"cmp"
	"math"
	"slices"

	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/sdk/abi"
)

// home returns the worker that every router chooses alike for a session, while the store does not answer where it
// lives. It hashes by rendezvous over the workers that are up, and returns "" if none is.
func home(n *session.Name, f *fleet) string {
	best, most := "", math.Inf(-1)
	for i, w := range f.workers {
		if p := pull(n, w.ID(), &f.frame.Rows[i]); p > most {
			best, most = w.ID(), p
		}
	}
	return best
}

// sortAlike puts rows of a fleet into the order that every router gives them for a session.
func sortAlike(rows []int32, n *session.Name, f *fleet) {
	pulls := make([]float64, len(f.workers))
	for i, w := range f.workers {
		pulls[i] = pull(n, w.ID(), &f.frame.Rows[i])
	}
	slices.SortFunc(rows, func(a, b int32) int { return cmp.Compare(pulls[b], pulls[a]) })
}

// pull returns how strongly a worker draws a session: rendezvous hashing with weights (Schindelhauer and Schomaker).
// Each worker gets its share, and when one goes only its own sessions move.
func pull(n *session.Name, worker string, r *abi.Row) float64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a: the same in every router
	h := uint64(offset)
	for _, s := range [...]string{n.Tenant, "\x00", n.ID, "\x00", worker} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * prime
		}
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd // FNV's last bytes hardly move its high bits
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	u := (float64(h>>11) + 0.5) / (1 << 53) // between 0 and 1, neither of them
	return -float64(max(r.Weight, 1e-6)) / math.Log(u)
}
