package prefix

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Namespace is one tree. Prompts of different namespaces never share a block, whatever their hashes. Safe for
// concurrent use. A caller may keep it: once evicted, it matches nothing and learns nothing.
type Namespace struct {
	key     string
	forest  *forest
	scratch *sync.Pool // *scratch of Match
	index   *Index
	used    atomic.Int64 // in order of use among namespaces
	root    node         // guarded by forest.mu
	gone    bool         // guarded by forest.mu
}

// Touch records that the worker holds the whole chain as of now, because it was sent there or served there. It evicts
// blocks beyond the worker's capacity, oldest first, of any namespace. It ignores a slot out of range, and does nothing
// in a namespace that was evicted.
func (n *Namespace) Touch(slot uint32, chain []uint64) { n.touch(slot, chain, n.index.now()) }

// TouchAgo is Touch for an event some time ago. Later touches of the worker stay newer than this one. So touches that
// are reported late, in any order, leave the same state as in their own order.
func (n *Namespace) TouchAgo(slot uint32, chain []uint64, ago time.Duration) {
	n.touch(slot, chain, n.index.now()-int64(max(0, ago)))
}

func (n *Namespace) touch(slot uint32, chain []uint64, now int64) touched {
	n.forest.mu.Lock()
	defer n.forest.mu.Unlock()
	if n.gone || int(slot) >= len(n.forest.workers) {
		return touched{}
	}
	return n.forest.touch(&n.root, slot, chain, now)
}

// Match sets out[i] to the number of leading blocks of chain that the worker slots[i] holds by this index: one walk for
// all workers, no allocation. out must be as long as slots.
func (n *Namespace) Match(chain []uint64, slots []uint32, out []uint32) {
	if len(out) < len(slots) {
		panic(fmt.Sprintf("BUG: prefix: %d results for %d slots", len(out), len(slots)))
	}
	if counted(slots) { // the usual case: out itself has a cell for each
		out = out[:len(slots)]
		clear(out)
		n.forest.mu.RLock()
		walk(&n.root, chain, out, 0, nil)
		n.forest.mu.RUnlock()
		return
	}
	s := n.scratch.Get().(*scratch)
	n.forest.mu.RLock()
	round := s.begin(n.forest)
	walk(&n.root, chain, s.cells, round, slots)
	n.forest.mu.RUnlock()
	for i, slot := range slots {
		out[i] = 0
		if int(slot) < len(s.cells) {
			if v := s.cells[slot]; v&^(1<<32-1) == round {
				out[i] = uint32(v)
			}
		}
	}
	n.scratch.Put(s)
}

// Holder is a worker that holds leading blocks of a chain.
type Holder struct{ Slot, Blocks uint32 }

// Holders appends the workers that hold leading blocks of chain by this index, those that hold the most first, at most
// limit of them. Of those that hold as much and are too many it takes some, others for another chain.
func (n *Namespace) Holders(chain []uint64, limit int, into []Holder) []Holder {
	s := n.scratch.Get().(*scratch)
	defer n.scratch.Put(s)
	n.forest.mu.RLock()
	defer n.forest.mu.RUnlock()
	from, round := len(into), s.begin(n.forest)
	last, before, shared := deepest(&n.root, chain)
	for last != nil && last.parent != nil && len(into)-from < limit {
		held, at := last.held, 0
		if len(held) > limit {
			at = int(chain[len(chain)-1] % uint64(len(held)))
		}
		for i := 0; i < len(held) && len(into)-from < limit; i++ {
			h := &held[(at+i)%len(held)]
			if cell := &s.cells[h.slot]; *cell != round {
				*cell = round
				into = append(into, Holder{h.slot, uint32(before) + min(h.length, uint32(shared))})
			}
		}
		last = last.parent
		shared = len(last.run)
		before -= shared
	}
	slices.SortStableFunc(into[from:], func(a, b Holder) int { return cmp.Compare(b.Blocks, a.Blocks) })
	return into
}

// Best returns the worker that holds the most leading blocks of chain by this index, and how many; of equal ones the
// one with the lowest slot. It returns 0 blocks if no worker holds any. It does not allocate.
func (n *Namespace) Best(chain []uint64) (slot, blocks uint32) {
	n.forest.mu.RLock()
	defer n.forest.mu.RUnlock()
	last, before, shared := deepest(&n.root, chain)
	if last == nil {
		return 0, 0
	}
	for i := range last.held { // a holder of some of it holds more than any worker that holds none of it
		h := &last.held[i]
		if b := uint32(before) + min(h.length, uint32(shared)); b > blocks {
			slot = h.slot
			blocks = b
		}
	}
	return slot, blocks
}

// MatchOne returns how many leading blocks of chain one worker holds by this index. It costs less than Match where many
// workers hold the same.
func (n *Namespace) MatchOne(chain []uint64, slot uint32) uint32 {
	n.forest.mu.RLock()
	defer n.forest.mu.RUnlock()
	for last, before, shared := deepest(&n.root, chain); last != nil && last.parent != nil; {
		if i, ok := last.held.find(slot); ok {
			return uint32(before + min(int(last.held[i].length), shared))
		}
		last = last.parent
		shared = len(last.run)
		before -= shared
	}
	return 0
}
