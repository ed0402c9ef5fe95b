package prefix

import "fmt"

// scratch holds a depth per slot while Match walks. A cell counts only if its upper half is the current round, so nothing
// needs clearing.
type scratch struct {
	round uint32
	cells []uint64 // round<<32 | depth
}

func (s *scratch) next() uint64 {
	s.round++
	if s.round == 0 {
		clear(s.cells)
		s.round = 1
	}
	return uint64(s.round) << 32
}

// Match sets out[i] to the number of leading blocks of chain that the worker slots[i] is believed to hold: one walk for
// all workers, no allocation. out must be as long as slots.
func (n *Namespace) Match(chain []uint64, slots []uint32, out []uint32) {
	if len(out) < len(slots) {
		panic(fmt.Sprintf("BUG: prefix: %d results for %d slots", len(out), len(slots)))
	}
	x := n.index
	s := x.scratch.Get().(*scratch)
	round := s.next()
	x.mu.RLock()
	n.walk(chain, s.cells, round)
	x.mu.RUnlock()
	for i, slot := range slots {
		out[i] = 0
		if int(slot) < len(s.cells) {
			if v := s.cells[slot]; v&^(1<<32-1) == round {
				out[i] = uint32(v)
			}
		}
	}
	x.scratch.Put(s)
}

// walk writes every holder's depth. A deeper node overwrites: who holds some of it holds all above it.
func (n *Namespace) walk(chain []uint64, cells []uint64, round uint64) {
	cur := &n.root
	for d := 0; d < len(chain); {
		cur = cur.kids.get(chain[d])
		if cur == nil {
			return
		}
		c := common(cur.run, chain[d:])
		at := round | uint64(d)
		for i := range cur.held {
			h := &cur.held[i]
			cells[h.slot] = at + uint64(min(h.length, uint32(c)))
		}
		if c < len(cur.run) {
			return
		}
		d += c
	}
}
