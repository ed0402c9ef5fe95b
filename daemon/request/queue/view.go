package queue

import (
	"cmp"
	"slices"
	"time"
)

// Counts are what has become of the requests of a queue since it began, and what waits.
type Counts struct {
	Depth     int
	Bytes     int64
	Entered   uint64
	Served    uint64
	Displaced uint64
	Classes   []ClassCount // with something that waits, the first first
}

// ClassCount is what waits in a class, over all lanes.
type ClassCount struct {
	Class    int
	Requests int
	Bytes    int64
}

// FlowCount is what waits of a flow.
type FlowCount struct {
	Flow     string    `json:"flow"` // the key's name, and behind a slash the fingerprint of the agent's session
	Class    int       `json:"priority"`
	Requests int       `json:"requests"`
	Cost     float64   `json:"prefill_seconds"` // that they need
	Served   time.Time `json:"served_at"`       // when one of them got a worker last, or the first came
	Blocked  bool      `json:"blocked"`         // a look for a worker found none with room since the last change
	Limit    string    `json:"limit,omitempty"` // of its key, for which they wait; absent = they wait for a worker
	Key      string    `json:"-"`
	Lane     uint64    `json:"-"`
}

// Counts returns the counts.
func (q *Queue) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := Counts{Depth: q.Depth(), Bytes: q.bytes, Entered: q.entered, Served: q.served, Displaced: q.displaced}
	for i, l := range &q.levels {
		if l != nil && l.requests > 0 {
			all.add(ClassCount{Class: i - MaxClass, Requests: l.requests, Bytes: l.bytes})
		}
	}
	for _, r := range q.held {
		all.add(ClassCount{Class: r.Class, Requests: 1, Bytes: r.Bytes})
	}
	return all
}

// add adds to the sums of a class.
func (n *Counts) add(c ClassCount) {
	i, found := slices.BinarySearchFunc(n.Classes, c.Class,
		func(x ClassCount, number int) int { return cmp.Compare(number, x.Class) })
	if !found {
		n.Classes = slices.Insert(n.Classes, i, ClassCount{Class: c.Class})
	}
	n.Classes[i].Requests += c.Requests
	n.Classes[i].Bytes += c.Bytes
}

// Waiting returns how many flows have requests that wait.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.flows)
}

// Flows returns at most n of the flows that wait, those with the most requests first.
func (q *Queue) Flows(n int) []FlowCount {
	q.mu.Lock()
	all := make([]FlowCount, 0, len(q.flows))
	for name, f := range q.flows {
		all = append(all, FlowCount{Key: name.key, Flow: name.flow, Class: name.class, Lane: name.lane, Requests: f.requests,
			Cost: f.prefill, Served: f.key.served, Limit: f.key.class.lane.limit,
			Blocked: f.key.class.lane.blocked != nil})
	}
	q.mu.Unlock()
	slices.SortFunc(all, func(x, y FlowCount) int {
		return cmp.Or(cmp.Compare(y.Requests, x.Requests), cmp.Compare(x.Key, y.Key), cmp.Compare(x.Flow, y.Flow),
			cmp.Compare(y.Class, x.Class), cmp.Compare(x.Lane, y.Lane))
	})
	return slices.Clip(all[:min(max(0, n), len(all))])
}

// Predict returns about how long a request would wait that came now, or how much longer one waits; 0 while that is not
// known. It counts what comes before it, at the rate at which its lane was served of late.
func (q *Queue) Predict(r *Request) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[r.Lane]
	if l == nil || l.rate.value() == 0 {
		return 0
	}
	_, seconds := q.before(r)
	return time.Duration(min(seconds/l.rate.value(), mostCost) * float64(time.Second))
}

// Position returns about how many requests come before one.
func (q *Queue) Position(r *Request) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	requests, _ := q.before(r)
	return requests
}

// before returns about how many requests of its lane come before r, and their seconds: all of higher classes, those of
// its flow that came earlier, and of the other flows of its key, and of the other keys of its class, at most what they
// may take meanwhile.
func (q *Queue) before(r *Request) (requests int, cost float64) {
	sane := *r
	sane.clamp()
	var classes []*class
	if l := q.lanes[r.Lane]; l != nil {
		classes = l.classes
	}
	f := r.flow
	if f == nil {
		f = q.flowOf(&sane)
	}
	k := q.keys[f.name.keyName]
	if k == nil {
		k = &key{weight: sane.Weight}
	}
	requests, cost = f.ahead(r)
	flows := float64(k.flows.Len())
	if f.key != nil {
		flows--
	}
	requests, cost = meanwhile(requests, cost, sane.cost(), flows, k.less(&f.sums))
	higher := sums{}
	for _, c := range classes {
		switch {
		case c.number > sane.Class:
			higher.requests += c.requests
			higher.cost += c.cost
		case c.number == sane.Class:
			weight := c.weight
			if k.class != nil {
				weight -= k.weight
			}
			requests, cost = meanwhile(requests, cost, sane.cost(), weight/k.weight, c.less(&k.sums))
		}
	}
	return requests + higher.requests, cost + higher.cost
}

// meanwhile adds to the requests before one of a member, and their seconds, what the other members take until its turn:
// their share for each that the member takes, if they have so much.
func meanwhile(requests int, cost, own, share float64, others sums) (int, float64) {
	return requests + min(others.requests, int(float64(requests+1)*share)), cost + min(others.cost, (cost+own)*share)
}

// less returns the sums without a part of them.
func (s *sums) less(part *sums) sums {
	return sums{requests: s.requests - part.requests, cost: s.cost - part.cost}
}
