package order

import (
	"cmp"
	"math"
	"slices"

	"github.com/warmpath/warmpath/cache/parts/pile"
	"github.com/warmpath/warmpath/sdk/abi"
)

// The measures.
const (
	ByFlight = iota
	ByWait
	ByRoom
	Measures
)

// Set is workers of type W in order of load. Not safe for concurrent use.
type Set[W any] struct {
	piles [Measures]pile.Pile[*rank[W]]
	sum   tally      // of those that take requests
	next  []int      // memory of Least
	ring  []*Seat[W] // of those that take requests, in order of slot; nil = not made since one of them came or went
}

// tally is sums over workers: how many there are; of those with prefill queued, how many, and when each will have done
// it; Slow and Load in the units of Now, requests in flight, weights, prompt tokens in flight and KV tokens; and how
// many have another weight than 1 or are in slow start.
type tally struct{ able, waiting, until, slow, load, flight, weight, tokens, room, uneven float64 }

// Now is what changes the rows of all workers alike, while no worker is placed anew. All of it is above 0.
type Now struct {
	Time float64 // seconds of the caller's clock
	Slow float64 // the fleet's slowness, by which Row.Slow is a multiple of a worker's own
	Back float64 // the same for Row.Load
}

// add adds what a worker has, or with sign -1 takes it away.
func (l *tally) add(o *tally, sign float64) {
	l.able += sign * o.able
	l.waiting += sign * o.waiting
	l.until += sign * o.until
	l.slow += sign * o.slow
	l.load += sign * o.load
	l.flight += sign * o.flight
	l.weight += sign * o.weight
	l.tokens += sign * o.tokens
	l.room += sign * o.room
	l.uneven += sign * o.uneven
}

// Seat is a worker's place in a set.
type Seat[W any] struct {
	Set    *Set[W]
	worker W
	slot   uint32
	part   tally   // in the set's sum
	flight float64 // this and the next two order rows that are equal, as the score does; each is per unit of weight
	lately float64
	sent   float64
	ranks  [Measures]rank[W]
}

// rank is a seat's place by one measure.
type rank[W any] struct {
	*Seat[W]
	key   float64
	place int
}

// Place implements pile.Ranked.
func (r *rank[W]) Place() *int { return &r.place }

// Before implements pile.Ranked. Most ranks differ in the first number or two, so it reads no further than it has to.
// None of the numbers is NaN, so it compares them without cmp.Compare, which costs three times as much.
func (r *rank[W]) Before(o *rank[W]) bool {
	switch {
	case r.key != o.key:
		return r.key < o.key
	case r.flight != o.flight:
		return r.flight < o.flight
	case r.lately != o.lately:
		return r.lately < o.lately
	case r.sent != o.sent:
		return r.sent < o.sent
	}
	return r.slot < o.slot
}

// Join makes a seat for a worker, which has its place after the first call of Put.
func (x *Set[W]) Join(w W) *Seat[W] {
	s := &Seat[W]{Set: x, worker: w}
	for i := range s.ranks {
		s.ranks[i].Seat = s
	}
	return s
}

// Put finds the place of a worker with that row. lately is Row.Lately in a form that fades for all alike: its
// logarithm, and the time over that in which it fades. A worker that is not able to take requests comes last, and does
// not count in the means.
func (s *Seat[W]) Put(r *abi.Row, able bool, now Now, lately float64) {
	if math.IsNaN(lately) { // of a sum that rounding has brought below 0
		lately = math.Inf(-1)
	}
	weight := max(float64(r.Weight), 1e-9)
	flight := float64(r.InFlight) / weight
	is := tally{able: 1, slow: finite(r.Slow / now.Slow), load: finite(r.Load / now.Back), flight: float64(r.InFlight),
		weight: weight, tokens: float64(r.FlightTokens), room: float64(r.KVTokens)}
	if r.Wait > 0 {
		is.waiting, is.until = 1, now.Time+r.Wait // which stays as it is while the queue gets shorter
	}
	if weight != 1 || r.SlowStart() {
		is.uneven = 1
	}
	if r.SlowStart() {
		flight = 2*flight + 2
	}
	keys := [Measures]float64{ByFlight: flight, ByWait: is.until, ByRoom: -r.Room()}
	if !able {
		is, keys = tally{}, [Measures]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
	}
	if is.able != s.part.able {
		s.Set.ring = nil
	}
	if is != s.part {
		s.Set.sum.add(&s.part, -1)
		s.Set.sum.add(&is, 1)
		s.part = is
	}
	sent := float64(r.Sent) / weight
	moved := s.flight != flight || s.lately != lately || s.sent != sent
	s.slot, s.flight, s.lately, s.sent = r.Worker, flight, lately, sent
	for i := range s.ranks {
		if k := &s.ranks[i]; moved || k.place == 0 || k.key != keys[i] {
			k.key = keys[i]
			s.Set.piles[i].Put(k)
		}
	}
}

// Turn returns the worker that request n goes to, if the workers that take requests get them in turn and in order of
// slot. of is how many such workers there are; 0 = none.
func (x *Set[W]) Turn(n uint64) (w W, of uint64) {
	if x.ring == nil {
		for _, r := range x.piles[ByFlight] {
			if r.part.able > 0 {
				x.ring = append(x.ring, r.Seat)
			}
		}
		slices.SortFunc(x.ring, func(a, b *Seat[W]) int { return cmp.Compare(a.slot, b.slot) })
	}
	of = uint64(len(x.ring))
	if of > 0 {
		w = x.ring[n%of].worker
	}
	return w, of
}

// Fade has all loads fade by a factor.
func (x *Set[W]) Fade(keep float64) {
	x.sum.load *= keep
	for _, r := range x.piles[ByFlight] {
		r.part.load *= keep
	}
}

// finite returns v, 0 for what is no number: it would spoil a sum for ever.
func finite(v float64) float64 {
	if v-v != 0 {
		return 0
	}
	return v
}

// Before reports whether a worker comes before another one of its set by a measure.
func (s *Seat[W]) Before(o *Seat[W], measure int) bool {
	return s.ranks[measure].Before(&o.ranks[measure])
}

// Least calls visit with the workers in order of a measure, until it returns false.
func (x *Set[W]) Least(measure int, visit func(W) bool) {
	p, next := x.piles[measure], x.next[:0] // places in the pile of which one comes next
	if len(p) > 0 {
		next = append(next, 0)
	}
	for len(next) > 0 {
		least := 0
		for i := range next {
			if p[next[i]].Before(p[next[least]]) {
				least = i
			}
		}
		at := next[least]
		if !visit(p[at].worker) {
			break
		}
		next[least] = next[len(next)-1]
		next = next[:len(next)-1]
		for child := 2*at + 1; child <= 2*at+2 && child < len(p); child++ {
			next = append(next, child)
		}
	}
	x.next = next
}

// Weight returns the sum of the weights of those that take requests.
func (x *Set[W]) Weight() float64 { return max(x.sum.weight, 1e-9) }

// Describe writes the means into the header of a request that so many rows are shown of. A set of nil has none.
func (x *Set[W]) Describe(h *abi.Header, rows int, now Now) {
	h.LeftOut, h.MeanWait, h.MeanSlow, h.MeanLoad = 0, 0, 0, 0
	h.MeanFlight, h.MeanPrompt, h.KVInFlight, h.Uneven = 0, 0, 0, 0
	if x == nil || int(x.sum.able) <= rows {
		return
	}
	l, mean := &x.sum, func(sum, of float64) float32 { return float32(max(0, sum) / max(of, 1e-9)) }
	h.LeftOut = uint32(int(l.able) - rows)
	h.MeanWait = mean(l.until-now.Time*l.waiting, l.able)
	h.MeanSlow, h.MeanLoad = mean(l.slow*now.Slow, l.able), mean(l.load*now.Back, l.able)
	h.MeanFlight, h.KVInFlight = mean(l.flight, l.weight), 1
	if l.room > 0 {
		h.KVInFlight = mean(l.tokens, l.room)
	}
	if l.flight > .5 {
		h.MeanPrompt = mean(l.tokens, l.flight)
	}
	if l.uneven > .5 {
		h.Uneven = 1
	}
}
