package worker

import (
	"cmp"
	"slices"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/fleet/order"
)

// This file chooses candidates in a large pool, so that a request costs as much as they are many and not as the pool is
// large: the workers that hold the prompt, those that the request names, and those with the least load (package order).

// How many workers become candidates.
const (
	mostFree  = 16 // of those with the least in flight, and half as many by each of the other measures
	holding   = 24 // of those that hold the prompt
	nextTurns = 4  // of those whose turn comes next
	maxVisits = 8  // times as many are looked at that cannot take the request, before all are
)

// takeSome appends the rows of candidates. It returns false, and has appended none, if all workers are to be looked at:
// they are few, or candidates are not wanted, or none of them can take the request.
func (s *shot) takeSome() bool {
	f, now := s.fleet, s.moment.now
	if !s.Few || s.Again || s.Wide || s.Full || s.Only != nil || s.From != nil || s.adapter || len(f.workers) <= allOf {
		return false
	}
	f.age(now)
	m := f.moment(now)
	g := f.cohortOf(s.Fence, &m)
	if g == nil || len(g.members) <= allOf || s.Turn > 0 && (f.mixed || s.Rank > 0) {
		return false
	}
	f.look(g, &m)
	s.moment, s.weight, s.cohort = m, g.order.Weight(), g
	f.some = f.some[:0]
	f.round++
	s.addNamed()
	s.addHolders()
	left := 0
	if s.Turn > 0 && !s.addTurn() {
		left++
	}
	for measure := range order.Measures {
		n := mostFree
		if measure > order.ByFlight {
			n /= 2
		}
		left += n - s.addLeast(measure, n)
	}
	if left > 0 { // those that are left may be anywhere
		s.cohort, s.turn = nil, nil
		return false
	}
	slices.SortFunc(f.some, func(a, b *Worker) int { return cmp.Compare(a.slot, b.slot) })
	for _, w := range f.some { // a sample of one changes the speed of all
		f.settle(w, now)
	}
	s.moment.slowness = f.speed.Value
	s.eased = f.conf.MaxWait > 0
	rows := len(s.rows)
	s.among = f.some
	s.takeBy(s.first())
	if len(s.rows) == rows {
		s.standing, s.eased, s.met, s.hidden, s.among, s.cohort = Lacking, false, false, false, f.workers, nil
		s.turn = nil
		return false
	}
	return true
}

// candidate makes w a candidate, once.
func (s *shot) candidate(w *Worker) {
	if w != nil && w.round != s.fleet.round && w.place == configured && !s.outside(w) {
		w.round = s.fleet.round
		s.fleet.some = append(s.fleet.some, w)
	}
}

// addNamed adds the workers that the request names: that of its session, and those of its conversation.
func (s *shot) addNamed() {
	if s.Bound != "" {
		s.candidate(s.fleet.keyed[KeyOf(s.Bound)])
	}
	for _, key := range s.Near {
		s.candidate(s.fleet.keyed[key])
	}
}

// addHolders adds the workers that hold the prompt, those that hold the most first. Of too many that hold as much it
// takes those with the least load.
func (s *shot) addHolders() {
	all, left := s.Holders, holding
	for len(all) > 0 && left > 0 {
		n := 1
		for n < len(all) && all[n].Blocks == all[0].Blocks {
			n++
		}
		if n <= left {
			for _, h := range all[:n] {
				s.candidate(s.fleet.taken[h.Slot])
			}
			left -= n
		} else {
			s.addLeastOf(all[:n], order.ByFlight, (left+1)/2)
			if left > 1 {
				s.addLeastOf(all[:n], order.ByWait, left/2)
			}
			left = 0
		}
		all = all[n:]
	}
}

// addLeastOf adds n of the holders that come first by a measure, at least one.
func (s *shot) addLeastOf(all []prefix.Holder, measure, n int) {
	var best [holding]*Worker
	k := 0
	for _, h := range all {
		w := s.fleet.taken[h.Slot]
		if w == nil || w.seat(s.cohort) == nil {
			continue
		}
		before := func(i int) bool { return w.seat(s.cohort).Before(best[i].seat(s.cohort), measure) }
		if k == n && !before(k-1) {
			continue
		}
		k = min(k+1, n)
		at := k - 1
		for ; at > 0 && before(at-1); at-- {
			best[at] = best[at-1]
		}
		best[at] = w
	}
	for _, w := range best[:k] {
		s.candidate(w)
	}
}

// addLeast adds the first workers by a measure, until n of them can take the request. It returns how many can.
func (s *shot) addLeast(measure, n int) (able int) {
	visits, first := 0, s.first()
	s.cohort.order.Least(measure, func(w *Worker) bool {
		s.candidate(w)
		if s.able(w, first) {
			able++
		}
		visits++
		return able < n && visits < maxVisits*n
	})
	return able
}

// able reports whether w can take the request at once.
func (s *shot) able(w *Worker, m mode) bool {
	return !s.outside(w) && s.concerns(w) && s.fit(w, s.judge(w, m)) == Ready
}

// addTurn adds the worker whose turn it is, and the next ones as alternatives. The strategy would choose the same
// worker from the rows of all, as long as no worker is full or starts slowly. The turn of such a worker goes to a
// random one: its neighbour would get two turns. addTurn returns false if it finds no worker.
func (s *shot) addTurn() bool {
	set, n, first := &s.cohort.order, s.Turn-1, s.first()
	w, of := set.Turn(n)
	for try := uint64(1); of > 0 && !s.able(w, first); try++ {
		if try > maxVisits {
			return false
		}
		n = (s.Turn*maxVisits + try) * 0x9e3779b97f4a7c15 >> 32
		w, _ = set.Turn(n)
	}
	s.turn = w
	for i := range min(of, nextTurns) {
		w, _ = set.Turn(n + i)
		s.candidate(w)
	}
	return of > 0
}
