package holdings

import (
	"fmt"
	"math"
)

// Held is how much of a prompt a worker has, in tokens from its start. Workers may have different block sizes.
type Held struct {
	GPU   uint32 // on the GPU, or predicted to be
	Local uint32 // there or in Local
	All   uint32 // there, or in the shared tier
	Live  bool   // its view is to be believed
}

// scratch is what Match needs while it walks.
type scratch struct {
	cells []cell
	way   []stop
}

// Match fills out[i] for slots[i]. Of each prompt it counts at most (len-1)/size blocks, as the engine does, which
// computes one token at least. It takes read locks only, but for a prediction that has run out, and allocates nothing.
func (x *Index) Match(q *Query, slots []uint32, out []Held) {
	if len(out) < len(slots) {
		panic(fmt.Sprintf("BUG: holdings: %d results for %d slots", len(out), len(slots)))
	}
	x.predicted.expire(x.now)
	workers := *x.workers.Load()
	for i, slot := range slots {
		out[i] = Held{}
		if int(slot) < len(workers) && workers[slot] != nil {
			out[i].Live = workers[slot].live.Load()
		}
	}
	s, _ := x.scratch.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	if cap(s.cells) < len(workers) {
		s.cells = make([]cell, len(workers))
	}
	s.cells = s.cells[:len(workers)]
	for _, p := range x.dir.planes(q.key) {
		chain := q.usable(q.hashes(x.seed, p.size), p.size)
		if len(chain) > 0 {
			s.match(p, chain)
			s.tell(p.size, slots, out)
		}
	}
	x.scratch.Put(s)
}

// match fills the cells by the walk of one plane.
func (s *scratch) match(p *plane, chain []uint64) {
	clear(s.cells)
	p.mu.RLock()
	defer p.mu.RUnlock()
	var tiered bool
	s.way, tiered = p.follow(chain, s.cells, s.way[:0])
	if tiered {
		cover(s.way, s.cells)
	}
	clear(s.way) // or what is pruned would stay in memory
}

// tell raises the results to what the cells say. Between planes the larger counts: an engine looks up one tier after
// the other, each from the start of the prompt.
func (s *scratch) tell(size int, slots []uint32, out []Held) {
	for i, slot := range slots {
		if int(slot) >= len(s.cells) {
			continue
		}
		c, h := s.cells[slot], &out[i]
		h.GPU = max(h.GPU, c.gpu*uint32(size))
		h.Local = max(h.Local, c.both*uint32(size))
		h.All = max(h.All, h.Local, c.all*uint32(size))
	}
}

// Predict enters a dispatch: the worker will hold the whole blocks of the prompt on its GPU, in blocks of its last
// event's size. Those that it does not hold yet count as held until an event confirms them, but no longer than
// Config.Predicted. It returns 0 if there are none, or the worker's block size is not known.
func (x *Index) Predict(slot uint32, q *Query) Ticket {
	w := x.worker(slot)
	if w == nil || slot == Shared {
		return 0
	}
	size := int(w.size.Load())
	if size == 0 || len(q.ids) < size {
		return 0
	}
	chain := q.hashes(x.seed, size)
	f := &x.predicted
	f.mu.Lock()
	defer f.mu.Unlock()
	now := x.now()
	f.until(now)
	plane := f.dir.plane(q.key, size)
	if plane == nil {
		return 0
	}
	return f.add(prediction{slot: slot, until: now + f.lasts, plane: plane}, chain)
}

// Withdraw ends what is left of a prediction: the dispatch failed. One that has run out is none.
func (x *Index) Withdraw(t Ticket) {
	f := &x.predicted
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := int64(t) - int64(f.first); t > 0 && i >= 0 && i < int64(len(f.queue)) {
		f.end(&f.queue[i], t)
		f.until(math.MinInt64)
	}
}
