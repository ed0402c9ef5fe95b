package holdings

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/warmpath/warmpath/cache/prefix"
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
	for i, slot := range slots {
		out[i] = Held{Live: x.IsLive(slot)}
	}
	x.walk(q, func(s *scratch, size uint32, tiered bool) {
		s.raise(size, slots, out)
		if tiered {
			s.raiseAll(size, slots, out)
		}
	})
}

// Holders appends the workers that hold a part of the prompt, at most limit of them, those that hold the most first. In
// each Holder a block is one token.
func (x *Index) Holders(q *Query, limit int, into []prefix.Holder) []prefix.Holder {
	from := len(into)
	x.walk(q, func(s *scratch, size uint32, tiered bool) {
		for slot := range s.cells {
			n := s.cells[slot].both
			if tiered {
				n = max(n, s.all[slot])
			}
			if n > 0 {
				into = append(into, prefix.Holder{Slot: uint32(slot), Blocks: n * size})
			}
		}
	})
	slices.SortStableFunc(into[from:], func(a, b prefix.Holder) int { return cmp.Compare(b.Blocks, a.Blocks) })
	return into[:min(len(into), from+limit)]
}

// Path returns the hashes by which a worker's engine names the leading blocks of the prompt that it holds on its GPU or
// in Local, and the tokens in a block. It has those that events have confirmed. The table has hash to place alone, so
// all of it is read: some 2 ms for a million blocks, which hold up the worker's events meanwhile.
func (x *Index) Path(slot uint32, q *Query) (hashes []uint64, size int) {
	w := x.worker(slot)
	if w == nil || slot == Shared {
		return nil, 0
	}
	size = int(w.size.Load())
	p := x.dir.find(q.key, size)
	if p == nil || q.usable(size) <= 0 {
		return nil, size
	}
	hashes = make([]uint64, q.usable(size))
	w.mu.Lock()
	defer w.mu.Unlock()
	p.mu.RLock()
	way, _ := p.follow(q.hashes(x.seed, size), len(hashes), nil, nil)
	places := make(map[uint32]stop, len(way))
	for _, s := range way {
		if h := s.n.holder(slot); h != nil && h.id != 0 {
			places[h.id] = s
		}
	}
	p.mu.RUnlock()
	known := make([]bool, len(hashes))
	for i := range w.table.buckets {
		b := &w.table.buckets[i]
		if s, ok := places[b.id]; ok && b.offset() < s.shared {
			hashes[s.start+b.offset()], known[s.start+b.offset()] = b.hash, true
		}
	}
	if n := slices.Index(known, false); n >= 0 {
		hashes = hashes[:n]
	}
	return hashes, size
}

// IsLive reports whether the view of a worker is to be believed.
func (x *Index) IsLive(slot uint32) bool { return int(slot) < len(x.live) && x.live[slot].Load() }

// walk calls visit for each block size, with cells, and all if tiered, that show what each worker holds.
func (x *Index) walk(q *Query, visit func(s *scratch, size uint32, tiered bool)) {
	x.predicted.expire(x.now)
	s, _ := x.scratch.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	defer x.scratch.Put(s)
	workers := len(*x.workers.Load())
	for _, p := range x.dir.planes(q.key) {
		if limit := q.usable(p.size); limit > 0 {
			s.cells = zeroed(s.cells, workers)
			visit(s, uint32(p.size), s.match(p, q.hashes(x.seed, p.size), limit))
		}
	}
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

// raise raises the results to those of a plane, in blocks of size tokens. The larger counts: an engine looks up one
// tier after the other, each from the start of the prompt.
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
