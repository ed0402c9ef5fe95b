package prefix

// scratch holds a depth per slot while Match walks. A cell counts only if its upper half is the current round, so
// nothing needs clearing.
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

// counted reports whether slots are 0, 1, 2 and so on, without a gap.
func counted(slots []uint32) bool {
	off := uint32(0)
	for i, slot := range slots { // no branch: it is most often all of them
		off |= slot ^ uint32(i)
	}
	return off == 0
}

// walk writes round|depth for every holder that has a cell. A deeper node overwrites: who holds some of it holds all
// above it.
func walk[T uint32 | uint64](cur *node, chain []uint64, cells []T, round T) {
	for d := 0; d < len(chain); {
		cur = cur.kids.get(chain[d])
		if cur == nil {
			return
		}
		c := cur.common(chain[d:])
		at, most := round|T(d), uint32(c)
		held := cur.held // or the loop, which may be long, loads it each time
		for i := range held {
			h := &held[i]
			if int(h.slot) >= len(cells) {
				break // held is sorted by slot
			}
			cells[h.slot] = at + T(min(h.length, most))
		}
		if c < len(cur.run) {
			return
		}
		d += c
	}
}

// deepest follows the chain and returns the last node of which it shares a block, the blocks before that node, and
// those of its run that are shared. It returns nil if nothing of the chain is there.
func deepest(root *node, chain []uint64) (last *node, before, shared int) {
	for d := 0; d < len(chain); {
		next := root.kids.get(chain[d])
		if next == nil {
			return last, before, shared
		}
		last = next
		before = d
		shared = next.common(chain[d:])
		if shared < len(next.run) {
			return last, before, shared
		}
		d += shared
		root = next
	}
	return last, before, shared
}
