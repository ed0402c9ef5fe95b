package queue

import (
	"container/list"
	"time"
)

// Config is how much a queue takes, and in which order it gives turns.
type Config struct {
	MaxRequests int
	MaxBytes    int64         // of Request.Bytes in all
	Starve      time.Duration // after which a flow gives its class a turn before higher ones; 0 = never
	ByDeadline  bool          // a flow's nearest deadline comes first, not the request that came first
}

// member is one of those that take turns with each other: a key of a class, or a flow of a key.
type member struct {
	requests int
	bytes    int64
	cost     float64 // seconds of all of them
	weight   float64

	deficit  float64 // seconds that it may still take in this round
	credited bool    // it got its quantum of this round
	round    *list.Element

	number int     // of its class
	share  float64 // of the queue's bounds, for its weight
	place  int     // in a worst
}

// count adds n times a request to the sums.
func (m *member) count(r *Request, n int) {
	m.requests += n
	m.bytes += int64(n) * r.Bytes
	m.cost += float64(n) * r.Cost
}

// mean returns the seconds of a request.
func (m *member) mean() float64 { return m.cost / float64(m.requests) }

// holds returns which share of the bounds so many requests and bytes are, for the member's weight.
func (m *member) holds(c *Config, requests int, bytes int64) float64 {
	return max(float64(requests)/float64(max(1, c.MaxRequests)), float64(bytes)/float64(max(1, c.MaxBytes))) / m.weight
}

// rank takes anew what the member holds.
func (m *member) rank(c *Config) { m.share = m.holds(c, m.requests, m.bytes) }

// taker takes turns.
type taker interface {
	// next returns its account, and what its next request costs.
	next() (*member, float64)
}

// roundRobin returns the taker whose turn it is, by deficit round robin. quantum is for a weight of 1. If it is the
// mean cost of what waits, for the mean weight, at most as many are visited as requests wait: what none can pay after
// a round is more than a mean request each.
func roundRobin(ring *list.List, quantum float64) taker {
	for {
		t := ring.Front().Value.(taker)
		m, cost := t.next()
		if !m.credited {
			m.credited = true
			m.deficit += quantum * m.weight
		}
		if m.deficit >= cost {
			return t
		}
		m.credited = false
		ring.MoveToBack(m.round)
	}
}

// ranked holds what a worst orders.
type ranked interface{ account() *member }

// worst is a heap of keys, or of the flows of one, by who makes room first: of the lowest class the one that holds the
// most.
type worst []ranked

// Len implements heap.Interface.
func (w worst) Len() int { return len(w) }

// Less implements heap.Interface.
func (w worst) Less(i, j int) bool {
	a, b := w[i].account(), w[j].account()
	if a.number != b.number {
		return a.number < b.number
	}
	return a.share > b.share
}

// Swap implements heap.Interface.
func (w worst) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].account().place, w[j].account().place = i, j
}

// Push implements heap.Interface.
func (w *worst) Push(x any) {
	m := x.(ranked)
	m.account().place = len(*w)
	*w = append(*w, m)
}

// Pop implements heap.Interface.
func (w *worst) Pop() any {
	n := len(*w) - 1
	m := (*w)[n]
	(*w)[n] = nil
	*w = (*w)[:n]
	return m
}

// account implements ranked.
func (m *member) account() *member { return m }
