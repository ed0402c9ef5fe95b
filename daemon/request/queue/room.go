package queue

// kept is the part of the room that is for classes which would else be displaced by higher ones, or kept out by them.
const kept = .25

// makeRoom displaces requests of the worst flow of the worst key until r fits. It displaces none if r does not fit even
// so.
func (q *Queue) makeRoom(r *Request) (displaced []*Request, ok bool) {
	requests, bytes := q.Depth()+1-q.conf.MaxRequests, q.bytes+r.Bytes-q.conf.MaxBytes
	if requests <= 0 && bytes <= 0 {
		return nil, true
	}
	a, low := q.yields(r)
	if a == nil {
		return nil, false
	}
	f := a.flows[0]
	loser, least := q.rivals(r, a, f)
	if loser == nil {
		return nil, false
	}
	left := loser.sums
	for last := f.waiting.Last; requests > 0 || bytes > 0; last = last.among.Prev {
		if last == q.turn && last != nil {
			last = last.among.Prev // it may be on its way to a worker
		}
		if last == nil || loser.holds(&q.conf, left.requests, left.bytes) <= least ||
			a.name.class != r.Class && !q.overKept(low) {
			return nil, false
		}
		displaced = append(displaced, last)
		left.count(last, -1)
		low.count(last, -1)
		requests, bytes = requests-1, bytes-last.Bytes
	}
	for _, d := range displaced {
		q.remove(d)
	}
	q.displaced += uint64(len(displaced))
	return displaced, true
}

// yields returns who makes room for r first: the worst key of the lowest class that, with those below it, has more
// than the part kept for them, r among them. low is what they have. So a lower class keeps that part, or gets it of a
// higher one. nil: none does.
func (q *Queue) yields(r *Request) (a *account, low sums) {
	for i, l := range &q.levels {
		if number := i - MaxClass; number == r.Class {
			low.count(r, 1)
		}
		if l == nil || l.requests == 0 {
			continue
		}
		low.requests += l.requests
		low.bytes += l.bytes
		if q.overKept(low) {
			return l.accounts[0], low
		}
	}
	return nil, low
}

// overKept reports whether the lower classes use more than the room reserved for them.
func (q *Queue) overKept(low sums) bool {
	return q.conf.Starve <= 0 || q.conf.part(low.requests, low.bytes) > kept
}

// rivals returns who would lose requests to r, the worst key or a flow of r's own key, and which share that one keeps
// at least: what r's key, or its flow, would have with r. A key of another class may lose all that yields lets it.
// nil: no holder has to give room to r.
func (q *Queue) rivals(r *Request, a *account, f *flow) (loser *holder, least float64) {
	own := q.flowOf(r)
	switch {
	case own == f || q.conf.Starve <= 0 && a.name.class > r.Class:
		return nil, 0
	case a.name.class != r.Class:
		return &a.holder, -1
	case a.name.key == r.Key:
		return &f.holder, own.holds(&q.conf, own.requests+1, own.bytes+r.Bytes)
	}
	rival := holder{weight: r.Weight}
	if has := q.accounts[nameOf(r).account()]; has != nil {
		rival.sums = has.sums
	}
	return &a.holder, rival.holds(&q.conf, rival.requests+1, rival.bytes+r.Bytes)
}
