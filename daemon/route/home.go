package route

import (
	"math"
	"slices"

	"github.com/warmpath/warmpath/daemon/session"
	"github.com/warmpath/warmpath/sdk/abi"
)

// home is the worker that every router chooses alike for the request's session, while the store cannot say where it
// lives: by rendezvous hashing over the workers that are up. "" if none is.
func (c *Choice) home() string {
	c.drawAll() // who starts slowly here may not do so at another router
	best, most := "", math.Inf(-1)
	for i, w := range c.fleet.workers {
		if s := pull(&c.stay.name, w.ID(), &c.fleet.frame.Rows[i]); s > most {
			best, most = w.ID(), s
		}
	}
	return best
}

// orderAlike puts the workers in the order that every router gives them for the request's session.
func (c *Choice) orderAlike() {
	rows := c.fleet.frame.Rows
	pulls := make([]float64, len(rows))
	order := c.result.Order[:0]
	for i := range rows {
		pulls[i] = pull(&c.stay.name, c.fleet.workers[i].ID(), &rows[i])
		order = append(order, int32(i))
	}
	slices.SortFunc(order, func(a, b int32) int {
		if pulls[a] > pulls[b] {
			return -1
		}
		return 1
	})
	c.result.Order, c.result.Row = order, int(order[0])
}

// pull is how much a worker draws a session: rendezvous hashing with weights (Schindelhauer and Schomaker). Each
// worker gets its share, and when one goes only its own sessions move.
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
