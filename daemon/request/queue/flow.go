package queue

import (
	"container/list"
	"time"

	"github.com/warmpath/warmpath/cache/parts/linked"
)

// Bounds for the values that a request states. Enter moves what lies outside.
const (
	MaxClass    = 100
	leastCost   = .01 // seconds: a prompt that is in a cache still takes some steps of its worker
	mostCost    = 3600
	leastWeight = .01
	mostWeight  = 100
)

// patience is the deadline that orders a request without a deadline among those of its flow that have one.
const patience = time.Minute

// Request is one that waits. Its owner sets the exported fields before Enter, and neither changes nor moves it until it
// has left.
type Request struct {
	Lane     uint64    // the same for requests that the same workers can serve
	Class    int       // the greater comes first; -MaxClass to MaxClass
	Key      string    // takes turns with the other keys of its class
	Weight   float64   // the key's share beside the others', .01 to 100; 0 = 1
	Flow     string    // takes turns with the other flows of its key
	Cost     float64   // seconds of prefill at the worker that has the most of the prompt
	Place    float64   // seconds for which it is expected to have its place there
	KV       float64   // part of the worker's KV cache that it is expected to take meanwhile
	Bytes    int64     // of memory that it holds
	Deadline time.Time // for its first token; zero = none
	Entered  time.Time // when it first came; zero = Enter sets it
	Limited  bool      // it waits for a limit of its key, not for workers: rates of other lanes say nothing of it
	Limit    string    // the name of that limit, for views
	Owner    any       // the caller's

	flow  *flow // nil = it does not wait, or is held
	held  bool
	among linked.Links[Request]
}

// clamp replaces NaN, infinite and negative numbers.
func (r *Request) clamp() {
	r.Class = min(max(r.Class, -MaxClass), MaxClass)
	r.Cost, r.Place, r.KV = between(r.Cost, leastCost, mostCost), between(r.Place, 0, mostCost), between(r.KV, 0, 1)
	r.Bytes = max(0, r.Bytes)
	if !(r.Weight > 0) {
		r.Weight = 1
	}
	r.Weight = between(r.Weight, leastWeight, mostWeight)
}

// cost returns the seconds that its key is charged for: those of prefill, and those of a place with its KV.
func (r *Request) cost() float64 { return r.Cost + r.Place*(1+r.KV) }

// between returns x within bounds, the lower one for NaN.
func between(x, least, most float64) float64 {
	if !(x >= least) {
		return least
	}
	return min(x, most)
}

// due is when the request wants its first token.
func (r *Request) due() time.Time {
	if r.Deadline.IsZero() {
		return r.Entered.Add(patience)
	}
	return r.Deadline
}

// sums are of requests that wait.
type sums struct {
	requests int
	bytes    int64
	cost     float64
	prefill  float64
}

// count adds n times a request.
func (s *sums) count(r *Request, n int) {
	s.requests += n
	s.bytes += int64(n) * r.Bytes
	s.cost += float64(n) * r.cost()
	s.prefill += float64(n) * r.Cost
}

// mean returns the seconds of a request.
func (s *sums) mean() float64 { return s.cost / float64(s.requests) }

// holder is a key or a flow that uses a part of the bounds. Each class of a key is a holder of its own.
type holder struct {
	sums
	weight float64
	share  float64 // of the bounds, for its weight
	spot   int     // in a pile of those who make room
}

// holds returns the share of the bounds that the given requests and bytes are, for the holder's weight.
func (h *holder) holds(c *Config, requests int, bytes int64) float64 {
	return c.part(requests, bytes) / h.weight
}

// rank takes anew what the holder holds.
func (h *holder) rank(c *Config) { h.share = h.holds(c, h.requests, h.bytes) }

// Before has the one make room first that holds the most.
func (f *flow) Before(other *flow) bool { return f.share > other.share }

func (f *flow) Place() *int { return &f.spot }

// flowName identifies a flow of a queue.
type flowName struct {
	keyName
	flow string
}

// flow has the requests of a name, of a key in one class of a lane. It lives as long as one of them waits.
type flow struct {
	holder
	name     flowName
	key      *key
	waiting  linked.List[Request] // in the order of their turns
	deficit  float64              // seconds that it may still take in this round
	credited bool                 // it got its quantum of this round
	round    *list.Element        // in key.flows
}

// insert puts a request behind those that come before it: by arrival or by deadline.
func (f *flow) insert(r *Request, byDeadline bool) {
	later := func(other *Request) bool { return other.Entered.After(r.Entered) }
	if byDeadline {
		later = func(other *Request) bool { return other.due().After(r.due()) }
	}
	before := f.waiting.Last
	for before != nil && later(before) {
		before = before.among.Prev
	}
	r.flow = f
	f.waiting.Insert(r, before, among)
}

// drop takes a request out.
func (f *flow) drop(r *Request) {
	f.waiting.Remove(r, among)
	r.flow = nil
}

func among(r *Request) *linked.Links[Request] { return &r.among }

// ahead returns how many requests of the flow come before r, and their seconds: all of them if r does not wait.
func (f *flow) ahead(r *Request) (requests int, cost float64) {
	if r.flow != f {
		return f.requests, f.cost
	}
	for other := f.waiting.First; other != r; other = other.among.Next {
		requests++
		cost += other.cost()
	}
	return requests, cost
}
