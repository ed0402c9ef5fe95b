package queue

import (
	"cmp"
	"container/list"
	"math"
	"time"
)

// laneState has the requests that the same workers can serve.
type laneState struct {
	id      uint64
	blocked bool    // one of them found no room, and nothing has changed since
	spent   float64 // seconds that were served for the weight of its flows
	weight  float64 // of all its flows
	classes int
	rate    rate
}

// class has the flows of one class in one lane.
type class struct {
	lane     *laneState
	number   int
	place    int       // in Queue.classes
	rounds   list.List // of *flow: the first has its turn
	ages     list.List // of *flow: the first was served the longest ago
	requests int
	bytes    int64
	cost     float64
	weight   float64 // of its flows
}

// before reports whether the class has its turn before another.
func (c *class) before(other *class) bool {
	return cmp.Or(cmp.Compare(other.number, c.number), cmp.Compare(c.lane.spent, other.lane.spent),
		cmp.Compare(c.lane.id, other.lane.id)) < 0
}

// oldest returns when the flow was served that was served the longest ago.
func (c *class) oldest() time.Time { return c.ages.Front().Value.(*flow).served }

// add takes a flow in.
func (c *class) add(f *flow, at time.Time) {
	f.class, f.served = c, at
	f.round, f.age = c.rounds.PushBack(f), c.ages.PushBack(f)
	c.weigh(f.weight)
}

// drop takes a flow out.
func (c *class) drop(f *flow) {
	c.rounds.Remove(f.round)
	c.ages.Remove(f.age)
	c.weigh(-f.weight)
}

// weigh adds to the weight of the flows.
func (c *class) weigh(weight float64) {
	c.weight += weight
	c.lane.weight += weight
}

// count adds n times a request to the sums.
func (c *class) count(r *Request, n int) {
	c.requests += n
	c.bytes += int64(n) * r.Bytes
	c.cost += float64(n) * r.Cost
}

// next returns the flow whose turn it is. It visits at most as many flows as requests wait: what all flows cannot pay
// after a round is more than a mean request each.
func (c *class) next() *flow {
	quantum := c.cost / float64(c.requests) * float64(c.rounds.Len()) / c.weight // for a weight of 1
	for {
		f := c.rounds.Front().Value.(*flow)
		if !f.credited {
			f.credited = true
			f.deficit += quantum * f.weight
		}
		if f.deficit >= f.first.Cost {
			return f
		}
		f.credited = false
		c.rounds.MoveToBack(f.round)
	}
}

// spend charges a flow for a request that is served.
func (c *class) spend(f *flow, r *Request, at time.Time) {
	f.deficit -= r.Cost
	f.served = at
	c.ages.MoveToBack(f.age)
}

// memory is how long a rate looks back.
const memory = 10 * time.Second

// rate learns how many seconds of prefill are served in a second in which requests wait.
type rate struct {
	since   time.Time // up to when it is counted
	served  float64
	seconds float64
}

// begin counts from a time on.
func (r *rate) begin(at time.Time) { r.since = at }

// add counts the time since the last call, and so many seconds that were served at its end.
func (r *rate) add(cost float64, at time.Time) {
	passed := max(0, at.Sub(r.since)).Seconds()
	fade := math.Exp(-passed / memory.Seconds())
	r.served = r.served*fade + cost
	r.seconds = r.seconds*fade + passed
	r.since = at
}

// value returns the rate; 0 = too little was seen.
func (r *rate) value() float64 {
	if r.seconds < 1 {
		return 0
	}
	return r.served / r.seconds
}
