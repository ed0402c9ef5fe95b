package holdings

import (
	"fmt"
	"math"
	"sync/atomic"
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
	all   []uint32 // by slot: blocks held with the shared tier too; only if that holds any
	way   []stop
}

// Match fills out[i] for slots[i]. It counts at most (len-1)/size blocks of each prompt. The engine does the same,
// since it always computes at least one token. Match takes only read locks, except when a prediction has run out, and
// allocates nothing.
func (x *Index) Match(q *Query, slots []uint32, out []Held) {
	if len(out) < len(slots) {
		panic(fmt.Sprintf("BUG: holdings: %d results for %d slots", len(out), len(slots)))
	}
	x.predicted.expire(x.now)
	s, _ := x.scratch.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	s.cells = zeroed(s.cells, len(*x.workers.Load()))
	first := true
	for _, p := range x.dir.planes(q.key) {
		limit := q.usable(p.size)
		if limit == 0 {
			continue
		}
		if !first {
			clear(s.cells)
		}
		tiered := s.match(p, q.hashes(x.seed, p.size), limit)
		if first {
			s.set(x.live, uint32(p.size), slots, out)
		} else {
			s.raise(uint32(p.size), slots, out)
		}
		if tiered {
			s.raiseAll(uint32(p.size), slots, out)
		}
		first = false
	}
	if first {
		s.set(x.live, 0, slots, out)
	}
	x.scratch.Put(s)
}

// zeroed returns n zeros, in the memory of old if they fit.
func zeroed[T any](old []T, n int) []T {
	if cap(old) < n {
		return make([]T, n)
	}
	old = old[:n]
	clear(old)
	return old
}

// match fills the cells by the walk of one plane, and s.all if it returns true.
func (s *scratch) match(p *plane, chain []uint64, limit int) (tiered bool) {
	p.mu.RLock()
	s.way, tiered = p.follow(chain, limit, s.cells, s.way[:0])
	if tiered {
		s.all = zeroed(s.all, len(s.cells))
		cover(s.way, s.all)
	}
	p.mu.RUnlock()
	clear(s.way) // or what is pruned would stay in memory
	return tiered
}

// set writes the results of the first plane to out, in blocks of size tokens.
func (s *scratch) set(live []atomic.Bool, size uint32, slots []uint32, out []Held) {
	out = out[:len(slots)]
	for i, slot := range slots {
		if int(slot) >= len(s.cells) {
			out[i] = Held{}
			continue
		}
		c := s.cells[slot]
		local := c.both * size
		out[i] = Held{GPU: c.gpu * size, Local: local, All: local, Live: live[slot].Load()}
	}
}

// raise raises the results to those of a further plane. The larger counts: an engine looks up one tier after the other,
// each from the start of the prompt.
func (s *scratch) raise(size uint32, slots []uint32, out []Held) {
	for i, slot := range slots {
		if int(slot) < len(s.cells) {
			h, c := &out[i], s.cells[slot]
			h.GPU = max(h.GPU, c.gpu*size)
			h.Local = max(h.Local, c.both*size)
			h.All = max(h.All, h.Local)
		}
	}
}

// raiseAll raises what is held with the shared tier too.
func (s *scratch) raiseAll(size uint32, slots []uint32, out []Held) {
	for i, slot := range slots {
		if int(slot) < len(s.all) {
			out[i].All = max(out[i].All, s.all[slot]*size)
		}
	}
}

// Predict records that a request was sent to a worker, which will then hold the whole blocks of the prompt on its GPU.
// The blocks have the size that the worker's last event named. Blocks that the worker does not hold yet count as held
// until an event confirms them, but no longer than Config.Predicted. It returns 0 if there are none, or the worker's
// block size is not known.
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
