package queue

import (
	"cmp"
	"container/heap"
	"container/list"
	"time"
)

// laneState has the requests that the same workers can serve.
type laneState struct {
	id      uint64
	blocked bool    // one of them found no room, and nothing has changed since
	stirred bool    // it was opened since one of them got the turn
	limited bool    // they wait for a limit of their key
	spent   float64 // seconds that were served for the weight of its keys
	weight  float64 // of all its keys
	classes int
	rate    rate
}

func (l *laneState) open() { l.blocked, l.stirred = false, true }

// class has the keys of one class in one lane.
type class struct {
	member // all that waits in it; weight is the sum of its keys'
	lane   *laneState
	index  int       // in Queue.classes
	keys   list.List // of *key: the first has its turn
	ages   list.List // of *flow: the first was served the longest ago
}

// before reports whether the class has its turn before another.
func (c *class) before(other *class) bool {
	return cmp.Or(cmp.Compare(other.number, c.number), cmp.Compare(c.lane.spent, other.lane.spent),
		cmp.Compare(c.lane.id, other.lane.id)) < 0
}

// oldest returns when the flow was served that was served the longest ago.
func (c *class) oldest() time.Time { return c.ages.Front().Value.(*flow).served }

// weigh adds to the weight of the keys.
func (c *class) weigh(weight float64) {
	c.weight += weight
	c.lane.weight += weight
}

// turn returns the request whose turn it is: of the key, and the flow of it, whose turn it is.
func (c *class) turn() *Request {
	return roundRobin(&c.keys, c.mean()*float64(c.keys.Len())/c.weight).(*key).turn().first
}

// keyName tells the keys of a queue apart.
type keyName struct {
	lane  uint64
	class int
	key   string
}

// key has the flows of a client's key in one class of a lane.
type key struct {
	member
	name  keyName
	class *class
	flows list.List // of *flow: the first has its turn
	worst worst     // of its flows
}

// turn returns the flow whose turn it is.
func (k *key) turn() *flow { return roundRobin(&k.flows, k.mean()).(*flow) }

// next implements taker.
func (k *key) next() (*member, float64) { return &k.member, k.turn().first.Cost }

// add takes a flow in.
func (k *key) add(f *flow, at time.Time) {
	f.key, f.served = k, at
	f.round, f.age = k.flows.PushBack(f), k.class.ages.PushBack(f)
	heap.Push(&k.worst, f)
}

// drop takes a flow out.
func (k *key) drop(f *flow) {
	k.flows.Remove(f.round)
	k.class.ages.Remove(f.age)
	heap.Remove(&k.worst, f.place)
}

// count adds n times a request of a flow to the sums of the flow, the key and the class.
func (k *key) count(f *flow, r *Request, n int) {
	f.count(r, n)
	k.member.count(r, n)
	k.class.member.count(r, n)
}

// spend charges a flow and its key for a request that is served.
func (k *key) spend(f *flow, r *Request, at time.Time) {
	f.deficit -= r.Cost
	k.deficit -= r.Cost
	f.served = at
	k.class.ages.MoveToBack(f.age)
}
