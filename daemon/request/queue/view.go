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
	Flow     string
	Class    int
	Lane     uint64
	Requests int
	Bytes    int64
	Cost     float64   // seconds of prefill
	Served   time.Time // when one was served last, or its first came
	Blocked  bool      // its lane found no room
}

// Counts returns the counts.
func (q *Queue) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := Counts{Depth: q.Depth(), Bytes: q.bytes, Entered: q.entered, Served: q.served, Displaced: q.displaced}
	for _, c := range q.classes {
		i, found := slices.BinarySearchFunc(all.Classes, c.number,
			func(x ClassCount, number int) int { return cmp.Compare(number, x.Class) })
		if !found {
			all.Classes = slices.Insert(all.Classes, i, ClassCount{Class: c.number})
		}
		all.Classes[i].Requests += c.requests
		all.Classes[i].Bytes += c.bytes
	}
	return all
}

// Flows returns at most n of the flows that wait, those with the most requests first.
func (q *Queue) Flows(n int) []FlowCount {
	q.mu.Lock()
	all := make([]FlowCount, 0, len(q.flows))
	for key, f := range q.flows {
		all = append(all, FlowCount{Flow: key.name, Class: key.class, Lane: key.lane, Requests: f.requests, Bytes: f.bytes,
			Cost: f.cost, Served: f.served, Blocked: f.class.lane.blocked})
	}
	q.mu.Unlock()
	slices.SortFunc(all, func(x, y FlowCount) int {
		return cmp.Or(cmp.Compare(y.Requests, x.Requests), cmp.Compare(x.Flow, y.Flow), cmp.Compare(y.Class, x.Class),
			cmp.Compare(x.Lane, y.Lane))
	})
	return slices.Clip(all[:min(max(0, n), len(all))])
}

// Predict returns about how long a request would wait that came now, or how much longer one waits; 0 while that is not
// known. It counts what comes before it, at the rate at which its lane was served of late.
func (q *Queue) Predict(r *Request) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.before(r)
	if a.lane == nil || a.lane.rate.value() == 0 {
		return 0
	}
	seconds := a.higherCost + a.ownCost + min(a.othersCost, (a.ownCost+a.r.Cost)*a.othersWeight/a.r.Weight)
	return time.Duration(min(seconds/a.lane.rate.value(), mostCost) * float64(time.Second))
}

// Position returns about how many requests come before one.
func (q *Queue) Position(r *Request) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.before(r)
	return a.higher + a.own + min(a.others, (a.own+1)*a.otherFlows)
}

// before is what comes before a request in its lane: all of higher classes, those of its flow that came earlier, and of
// the other flows of its class at most what they may take meanwhile.
type before struct {
	r                                             Request    // with sane numbers
	lane                                          *laneState // nil = nothing waits in it
	higher, own, others, otherFlows               int
	higherCost, ownCost, othersCost, othersWeight float64
}

// before returns what comes before a request.
func (q *Queue) before(r *Request) (b before) {
	b.r = *r
	b.r.clamp()
	b.lane = q.lanes[r.Lane]
	own := r.flow
	if own == nil {
		own = q.flowOf(&b.r)
	}
	b.own, b.ownCost = own.ahead(r)
	for _, c := range q.classes {
		switch {
		case c.lane != b.lane:
		case c.number > b.r.Class:
			b.higher += c.requests
			b.higherCost += c.cost
		case c.number == b.r.Class:
			b.others, b.otherFlows = c.requests, c.rounds.Len()
			b.othersCost, b.othersWeight = c.cost, c.weight
			if own.class == c {
				b.others, b.otherFlows = b.others-own.requests, b.otherFlows-1
				b.othersCost, b.othersWeight = b.othersCost-own.cost, b.othersWeight-own.weight
			}
		}
	}
	return b
}
