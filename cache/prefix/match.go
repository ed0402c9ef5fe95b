package prefix

// scratch holds a depth per slot while Match walks. A cell is valid only if its upper half is the current round, so
// that no cell needs clearing.
type scratch struct {
	round uint32
	cells []uint64 // round<<32 | depth
}

// begin makes a cell for each worker, and returns the next round. The caller holds the forest's lock.
func (s *scratch) begin(f *forest) uint64 {
	if len(s.cells) < len(f.workers) {
		s.cells = make([]uint64, len(f.workers))
	}
	return s.next()
}

func (s *scratch) next() uint64 {
	s.round++
	if s.round == 0 {
		clear(s.cells)
		s.round = 1
	}
	return uint64(s.round) << 32
}

// counted reports whether slots counts 0, 1, 2 and so on, without a gap.
func counted(slots []uint32) bool {
	off := uint32(0)
	for i, slot := range slots { // no branch: mostly it runs to the end
		off |= slot ^ uint32(i)
	}
	return off == 0
}

// crowded is how many holders a slot may cost: of a node with more, the slots are looked up.
const crowded = 8

// walk writes round|depth for every holder that has a cell. A deeper node overwrites the depth: a worker that holds
// some of it holds all above it. only = the slots that count, if they are few; nil = all.
func walk[T uint32 | uint64](cur *node, chain []uint64, cells []T, round T, only []uint32) {
	for d := 0; d < len(chain); {
		cur = cur.kids.get(chain[d])
		if cur == nil {
			return
		}
		c := cur.common(chain[d:])
		at, most := round|T(d), uint32(c)
		held := cur.held // else the loop, which may be long, loads it each time
		if only != nil && len(held) > crowded*len(only) {
			for _, slot := range only {
				if i, ok := held.find(slot); ok && int(slot) < len(cells) {
					cells[slot] = at + T(min(held[i].length, most))
				}
			}
			held = nil
		}
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

// deepest follows the chain. It returns the last node with a block of the chain, the number of blocks before that node,
// and the number of its run's blocks that are in the chain. It returns nil if the tree has no block of the chain.
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
