package holdings

import (
	"sync"
	"sync/atomic"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// position is a holder of the worker's and the plane in which it is.
type position struct {
	h *holder
	p *plane
}

// twin is a block that a worker holds under more than one engine hash: salted and plain prompts of an engine before
// 0.17, or the same ids with other images.
type twin struct {
	id     uint32
	offset uint16
	tier   blocks.Medium
}

// copied is a hash with more copies in a tier than its slot can count.
type copied struct {
	hash uint64
	tier blocks.Medium
}

// worker is what one worker has reported that it holds.
type worker struct {
	slot     uint32
	dir      *directory
	seed     uint64
	capacity int          // blocks
	live     *atomic.Bool // in Index.live
	size     atomic.Int64 // tokens a block on the GPU, of the last store there; 0 = none yet

	mu     sync.Mutex // guards all below. It is taken before a plane's
	gone   bool       // forgotten: whoever still has a Writer writes to nothing
	table  table
	places []position // by id; the first is never used
	free   []uint32
	twins  map[twin]uint32   // further hashes
	many   map[copied]uint32 // further copies
	parked orphans
	tally  Stats // without what is derived from the others

	// Scratch of one store.
	chain []uint64
	found []int
	segs  []seg
	fresh []uint64
	drops []drop
	warm  uint64 // of no meaning: what touch returns
}

// span64 is how many hashes are touched at once, and places vacated under one lock: some two microseconds.
const span64 = 64

// drop is a place that loses a block.
type drop struct {
	id     uint32
	offset int
}

// seg is a part of a store that stands in one node.
type seg struct {
	id       uint32
	from, at int // offset in the node; index in the store
	n        int
}

// add puts one copy of each block of s into its tier, after the block at the end of at; at nil stands for the root.
// What skip names is passed over. It returns false when the worker has more than it may.
func (w *worker) add(s *blocks.Stored, at *position, off int, skip []bool) bool {
	added := w.note(s, skip)
	if added < 0 {
		return false
	}
	if added == 0 {
		return true
	}
	p, n := w.chained(s, at, off)
	if p == nil {
		w.forgo(s, added)
		return true
	}
	w.stand(p, n, off, s)
	return true
}

// note enters the hashes of s into the table, each with one copy more. w.found has the slots of those that are new, -1
// for the others. It returns how many are new, -1 if they are too many.
func (w *worker) note(s *blocks.Stored, skip []bool) (added int) {
	w.found = w.found[:0]
	w.fresh = w.fresh[:0]
	if w.table.n+len(s.Hashes) > w.capacity {
		for i, h := range s.Hashes {
			if (skip == nil || !skip[i]) && w.table.find(h) < 0 {
				added++
			}
		}
		if w.table.n+added > w.capacity {
			return -1
		}
	}
	added = 0
	w.table.reserve(min(len(s.Hashes), w.capacity-w.table.n))
	for i, h := range s.Hashes {
		if i%span64 == 0 {
			w.warm += w.table.touch(s.Hashes[i:min(len(s.Hashes), i+span64)])
		}
		if skip != nil && skip[i] {
			w.found = append(w.found, -1)
			continue
		}
		at, was := w.table.put(h)
		if was {
			w.again(at, s.Medium)
			w.found = append(w.found, -1)
			continue
		}
		w.table.buckets[at].meta = 1 << shift(s.Medium)
		w.found = append(w.found, at)
		added++
	}
	w.tally.Held[s.Medium] += added
	w.tally.Stored += uint64(len(s.Hashes))
	return added
}

// again counts one copy more of a hash that the table has.
func (w *worker) again(at int, t blocks.Medium) {
	s := &w.table.buckets[at]
	switch c := s.copies(t); {
	case c == mostCopies:
		if w.many == nil {
			w.many = map[copied]uint32{}
		}
		w.many[copied{s.hash, t}]++
		return
	case c > 0 || s.id == pending:
		s.meta += 1 << shift(t)
		return
	}
	s.meta += 1 << shift(t)
	w.tally.Held[t]++
	at2 := w.places[s.id]
	at2.p.mu.Lock()
	w.hold(at2.h, t, s.offset(), s.offset()+1)
	at2.p.mu.Unlock()
}

// hold adds blocks to a holder, and counts those that it holds already, under another hash.
func (w *worker) hold(h *holder, t blocks.Medium, from, to int) {
	had := h.bits[t]
	if h.n[t] == 0 || had.end(to) <= from {
		h.hold(t, from, to)
		return
	}
	for i := from; i < to; i++ {
		if h.hold(t, i, i+1) > 0 {
			if w.twins == nil {
				w.twins = map[twin]uint32{}
			}
			w.twins[twin{h.id, uint16(i), t}]++
		}
	}
}

// forgo takes back what note entered.
func (w *worker) forgo(s *blocks.Stored, added int) {
	for i, h := range s.Hashes {
		if w.found[i] < 0 {
			continue
		}
		if at := w.table.find(h); at >= 0 {
			w.table.remove(at)
		}
	}
	w.tally.Held[s.Medium] -= added
	w.tally.Crowded += uint64(added)
	w.fresh = w.fresh[:0]
}

// chained hashes the blocks of s into w.chain, and returns the plane, locked, and the node in which its parent is. The
// plane is nil if there are too many.
func (w *worker) chained(s *blocks.Stored, at *position, off int) (*plane, *node) {
	if at == nil {
		w.chain = appendChain(w.chain[:0], w.seed, s.Tokens, s.BlockSize)
		p := w.dir.plane(keyOf(s.Adapter, s.Salt), s.BlockSize)
		if p == nil {
			return nil, nil
		}
		return p, &p.root
	}
	// The worker holds the parent, so it stays where it is between the two locks. A small store takes only one.
	n := at.h.node
	if len(s.Hashes) <= 4 {
		at.p.mu.Lock()
		w.chain = appendChain(w.chain[:0], n.run[off-1], s.Tokens, s.BlockSize)
		return at.p, n
	}
	at.p.mu.RLock()
	prev := n.run[off-1]
	at.p.mu.RUnlock()
	w.chain = appendChain(w.chain[:0], prev, s.Tokens, s.BlockSize)
	at.p.mu.Lock()
	return at.p, n
}

// stand finds the places of the blocks that note entered, and unlocks the plane.
func (w *worker) stand(p *plane, n *node, off int, s *blocks.Stored) {
	w.segs = w.segs[:0]
	for i := 0; i < len(w.chain); {
		var from, to int
		n, from, to = p.step(n, off, w.chain[i:])
		w.enter(p, n, s.Medium, seg{from: from, at: i, n: to - from})
		i += to - from
		off = to
	}
	p.prune(n)
	w.dir.unlock(p)
	for _, g := range w.segs {
		for i := range g.n {
			w.table.buckets[w.found[g.at+i]].settle(g.id, g.from+i)
		}
		w.fresh = append(w.fresh, s.Hashes[g.at:g.at+g.n]...)
	}
}

// enter holds the new blocks of one segment.
func (w *worker) enter(p *plane, n *node, t blocks.Medium, g seg) {
	var h *holder
	for i := 0; i < g.n; {
		first := i
		for i < g.n && w.found[g.at+i] >= 0 {
			i++
		}
		if i > first {
			if h == nil {
				h = w.holder(p, n)
			}
			w.hold(h, t, g.from+first, g.from+i)
			w.segs = append(w.segs, seg{id: h.id, from: g.from + first, at: g.at + first, n: i - first})
		}
		for i < g.n && w.found[g.at+i] < 0 {
			i++
		}
	}
}

// holder returns the worker's holder of a node, and gives it an id if it has none.
func (w *worker) holder(p *plane, n *node) *holder {
	h := n.holder(w.slot)
	if h == nil {
		h = n.join(w.slot)
	}
	if h.id != 0 {
		return h
	}
	if k := len(w.free); k > 0 {
		h.id = w.free[k-1]
		w.free = w.free[:k-1]
	} else {
		if len(w.places) == 0 {
			w.places = append(w.places, position{})
		}
		h.id = uint32(len(w.places))
		w.places = append(w.places, position{})
	}
	w.places[h.id] = position{h: h, p: p}
	return h
}

// overflow clears a worker that reports more than can be kept: its view cannot be right any more.
func (w *worker) overflow() {
	w.clear()
	w.live.Store(false)
	w.tally.Overflows++
}

// clear forgets all that the worker holds. It keeps the predictions.
func (w *worker) clear() {
	for _, at := range w.places {
		if at.h == nil {
			continue
		}
		at.p.mu.Lock()
		h := at.h
		h.bits = [2]bitmap{}
		h.n = [2]uint16{}
		h.id = 0
		h.lost(0)
		at.p.release(h)
		w.dir.unlock(at.p)
	}
	w.table.buckets = nil
	w.table.n = 0
	w.places = nil
	w.free = nil
	w.twins = nil
	w.many = nil
	w.parked = orphans{most: w.parked.most}
	w.tally.Held = [2]int{}
	w.chain = nil
	w.found = nil
	w.segs = nil
	w.fresh = nil
	w.drops = nil
}
