package queue

import "container/heap"

// worst orders flows by who makes room first: of the lowest class the one that holds the most.
type worst []*flow

// Len implements heap.Interface.
func (w worst) Len() int { return len(w) }

// Less implements heap.Interface.
func (w worst) Less(i, j int) bool {
	if a, b := w[i].key.class, w[j].key.class; a != b {
		return a < b
	}
	return w[i].share > w[j].share
}

// Swap implements heap.Interface.
func (w worst) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].place, w[j].place = i, j
}

// Push implements heap.Interface.
func (w *worst) Push(x any) {
	f := x.(*flow)
	f.place = len(*w)
	*w = append(*w, f)
}

// Pop implements heap.Interface.
func (w *worst) Pop() any {
	n := len(*w) - 1
	f := (*w)[n]
	(*w)[n] = nil
	*w = (*w)[:n]
	return f
}

// rank finds the place of a flow whose share has changed.
func (q *Queue) rank(f *flow) {
	f.share = f.holds(&q.conf, f.requests, f.bytes)
	heap.Fix(&q.worst, f.place)
}

// makeRoom displaces requests of the worst flow until r fits, which is to go to f. It displaces none if r does not fit
// even so.
func (q *Queue) makeRoom(r *Request, f *flow) (displaced []*Request, ok bool) {
	requests, bytes := q.Depth()+1-q.conf.MaxRequests, q.bytes+r.Bytes-q.conf.MaxBytes
	if requests <= 0 && bytes <= 0 {
		return nil, true
	}
	if len(q.worst) == 0 {
		return nil, false
	}
	w := q.worst[0]
	if w == f || w.key.class > r.Class {
		return nil, false
	}
	least := -1. // it may lose all to a higher class
	if w.key.class == r.Class {
		least = f.holds(&q.conf, f.requests+1, f.bytes+r.Bytes)
	}
	left, held := w.requests, w.bytes
	for last := w.last; requests > 0 || bytes > 0; last = last.prev {
		if last == q.turn && last != nil {
			last = last.prev // it may be on its way to a worker
		}
		if last == nil || w.holds(&q.conf, left, held) <= least {
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
