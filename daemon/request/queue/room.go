package queue

// makeRoom displaces requests of the worst flow of the worst key until r fits. It displaces none if r does not fit even
// so.
func (q *Queue) makeRoom(r *Request) (displaced []*Request, ok bool) {
	requests, bytes := q.Depth()+1-q.conf.MaxRequests, q.bytes+r.Bytes-q.conf.MaxBytes
	if requests <= 0 && bytes <= 0 {
		return nil, true
	}
	if len(q.worst) == 0 {
		return nil, false
	}
	k := q.worst[0].(*key)
	f := k.worst[0].(*flow)
	loser, least := q.rivals(r, k, f)
	if loser == nil {
		return nil, false
	}
	left, held := loser.requests, loser.bytes
	for last := f.last; requests > 0 || bytes > 0; last = last.prev {
		if last == q.turn && last != nil {
			last = last.prev // it may be on its way to a worker
		}
		if last == nil || loser.holds(&q.conf, left, held) <= least {
			return nil, false
		}
		displaced = append(displaced, last)
		left, held = left-1, held-last.Bytes
		requests, bytes = requests-1, bytes-last.Bytes
	}
	for _, d := range displaced {
		q.remove(d)
	}
	q.displaced += uint64(len(displaced))
	return displaced, true
}

// rivals returns who would lose requests to r, the worst key or a flow of r's own key, and which share that one keeps
// at least: what r's key, or its flow, would have with r. A lower class may lose all. nil: nobody loses anything to r.
func (q *Queue) rivals(r *Request, k *key, f *flow) (loser *member, least float64) {
	own := q.flowOf(r)
	switch {
	case k.number > r.Class || own == f:
		return nil, 0
	case k.number < r.Class:
		return &k.member, -1
	case k.name == own.name.keyName:
		return &f.member, own.holds(&q.conf, own.requests+1, own.bytes+r.Bytes)
	}
	rival := member{weight: r.Weight}
	if has := q.keys[own.name.keyName]; has != nil {
		rival = has.member
	}
	return &k.member, rival.holds(&q.conf, rival.requests+1, rival.bytes+r.Bytes)
}
