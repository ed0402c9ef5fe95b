package host

import (
	"cmp"
	"slices"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Pick has the module choose a row of f. It never fails: on any error the fallback answers, and Result.Fallback has the
// reason. A live binding is honoured under every strategy, without asking the module. It does not allocate once f has
// been used.
func (s *Strategy) Pick(f *Frame) Result {
	if f.Choices() <= 0 {
		return s.fallback(f, noRows)
	}
	f.prepare()
	if b := int(f.Header.Bound); b >= 0 && b < f.Choices() {
		f.order(b, nil, false)
		return Result{Row: b, Order: f.Order}
	}
	if s.native != nil {
		return s.native.choose(s, f)
	}
	return s.ask(f, false)
}

// Filter has the module say which rows of f, which has one at least, the request may use: Result.Order, ascending. All
// stay if it has no opinion. Result.Fallback is why it failed. Result.Reject then turns the client away, unless
// Options.Fallback has all rows stay.
func (s *Strategy) Filter(f *Frame) Result {
	f.prepare()
	f.Began = time.Now()
	r := s.ask(f, true)
	r.Took = time.Since(f.Began)
	slices.Sort(r.Order)
	r.Order = slices.Compact(r.Order)
	return r
}

// Decide is Pick among the rows that Filter leaves, if the module filters: for a caller that has no fleet. What it
// returns are rows of f.
func (s *Strategy) Decide(f *Frame) Result {
	if !s.Wants(abi.WantFilter) || len(f.Rows) == 0 {
		return s.Pick(f)
	}
	k := s.Filter(f)
	if k.Reject != nil || len(k.Order) == 0 {
		k.Row = -1
		k.Reject = cmp.Or(k.Reject, &Rejection{Status: 503})
		return k
	}
	left, kept := *f, slices.Clone(k.Order)
	left.Rows, left.WorkerIDs, left.Order, left.seen = slices.Clone(f.Rows), slices.Clone(f.WorkerIDs), nil, nil
	left.Keep(kept)
	r := s.Pick(&left)
	for i, row := range r.Order {
		r.Order[i] = kept[row]
	}
	if r.Row >= 0 {
		r.Row = int(kept[r.Row])
	}
	if r.Pair > 0 {
		r.Pair = 1 + int(kept[r.Pair-1])
	}
	r.Fuel += k.Fuel
	return r
}

// ask calls the module for Pick or Filter.
func (s *Strategy) ask(f *Frame, filters bool) Result {
	q := s.quarantineOf(f)
	if q.on() && !q.admit() {
		return s.fallback(f, quarantined)
	}
	if s.closed.Load() {
		return s.fallback(f, closed)
	}
	sl, waited := s.instances.take(s.program)
	if sl == nil && !s.cfg.Stepped {
		sl = s.instances.more(s.program, s.wake.ring)
	}
	if sl == nil {
		if s.closed.Load() {
			return s.fallback(f, closed)
		}
		return s.fallback(f, busy)
	}
	if waited && !f.Began.IsZero() {
		f.Began = epoch.Add(s.clock()) // the wait was not the module's
	}
	if own := s.own.Load(); own != nil && !f.OwnGiven {
		own.fill(f.Rows)
	}
	r, why, err := sl.in.run(f, filters)
	switch why {
	case ok:
		s.picks[sl.n].n.Add(1)
	case decline: // an answer, too
	default:
		s.discard(sl)
		q.failed(why, err, filters)
		fb := s.fallback(f, why)
		fb.Fuel = r.Fuel
		return fb
	}
	if sl.in.long(r.Fuel) {
		q.tookLong(s.name, s.pickTime/longShare)
	} else if q.succeeded() {
		s.wake.ring()
	}
	s.give(sl)
	if why == decline && !filters {
		fb := s.fallback(f, decline)
		fb.Fuel, fb.Reason, fb.Wishes = r.Fuel, r.Reason, f.wishes
		return fb
	}
	r.Wishes = f.wishes
	if r.Reject != nil || r.Hold > 0 || why == decline {
		r.Row = Fallback(f)
		f.order(r.Row, nil, false)
	}
	r.Order = f.Order
	return r
}

// Classify asks the module how urgent a request is that is about to wait: of f it sees the header and the texts. ok is
// false if the module does not classify, or has failed, or none of its instances is idle.
func (s *Strategy) Classify(f *Frame) (class int, weight float64, ok bool) {
	q := s.quarantineOf(f)
	if s.notices.wants&abi.WantClassify == 0 || q.on() {
		return 0, 0, false
	}
	if s.closed.Load() {
		return 0, 0, false
	}
	sl, _ := s.instances.take(s.program)
	if sl == nil {
		return 0, 0, false
	}
	v, err := sl.in.classify(f)
	if err != nil {
		why := sl.in.blame()
		s.discard(sl)
		q.warn("strategy failed to classify a request, which waits in the class of its key", why, err)
		q.count(why, err)
		return 0, 0, false
	}
	s.give(sl)
	c, w := abi.UnpackClass(v)
	return int(c), float64(w), true
}

// Plan has the module set the values of conversations that may move. It returns false, and changes none, if the module
// does not plan, has failed, or none of its instances is idle.
func (s *Strategy) Plan(talks []abi.Talk) bool {
	if !s.Wants(abi.WantPlan) || s.quarantine.on() || s.closed.Load() {
		return false
	}
	sl, _ := s.instances.take(s.program)
	if sl == nil {
		return false
	}
	values, err := sl.in.plan(talks)
	if err != nil {
		s.replace(sl, err)
		return false
	}
	s.give(sl)
	for i := range talks {
		talks[i].Value = values[i]
	}
	return true
}

// EndHold replaces a decision to hold the request of f, once the time for that is over: the fallback chooses.
func (s *Strategy) EndHold(f *Frame, r Result) Result {
	fb := s.fallback(f, holdOver)
	fb.Reason, fb.Flags, fb.Fuel, fb.Took = r.Reason, r.Flags, r.Fuel, r.Took
	return fb
}

// fallback chooses in the place of the module, or rejects the request if the operator wants that. Every result with a
// Fallback comes from here.
func (s *Strategy) fallback(f *Frame, why reason) Result {
	s.fallbacks[why].Add(1)
	row := Fallback(f)
	f.order(row, nil, false)
	r := Result{Row: row, Order: f.Order, Fallback: reasonNames[why]}
	if s.rejects {
		r.Reject = &Rejection{Status: 503}
	}
	return r
}

// maintEvery is the number of picks of an instance between two wp_maint. A Go guest collects garbage only while an
// export runs; at 1 KiB a pick this keeps it below 8 MiB. If the keeper does not come, the pick itself does it after
// four times as many.
const maintEvery = 256

// give returns a slot whose instance is well.
func (s *Strategy) give(sl *slot) {
	in := sl.in
	in.calls++
	if in.maint != nil && in.calls >= maintEvery {
		if in.calls >= 4*maintEvery {
			if err := in.maintain(); err != nil {
				s.replace(sl, err)
				return
			}
		} else if !sl.due.Swap(true) {
			s.wake.ring()
		}
	}
	sl.state.Store(idle)
}

// discard ends an instance that the caller has taken. An instance that trapped looks alive and is not: later calls
// answer, and then its runtime corrupts.
func (s *Strategy) discard(sl *slot) {
	sl.in.close()
	sl.in = nil
	sl.state.Store(empty)
	s.discarded.Add(1)
	s.wake.ring()
}

// replace discards an instance that failed in a call which concerns no request. It does not set the strategy aside: a
// module without that export would serve.
func (s *Strategy) replace(sl *slot, err error) {
	why := sl.in.blame()
	s.discard(sl)
	s.quarantine.warn("strategy failed in a call beside its picks, which concerns no request; its instance is replaced",
		why, err)
	s.quarantine.keep(err)
}
