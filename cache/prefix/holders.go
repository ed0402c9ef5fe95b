package prefix

import "slices"

// holder records that a worker holds the first length blocks of a node's run.
type holder struct {
	slot   uint32
	length uint32 // 1..len(run); the whole run if the worker holds anything of a child
	rec    uint32 // its place in the worker's LRU
}

// holders is the list of a node's holders, sorted by slot. Twelve bytes a holder in one array: Match reads all of them,
// and the first node of a common system prompt has a holder for every worker.
type holders []holder

// find returns the index of slot, or the index where it must be inserted.
func (h holders) find(slot uint32) (int, bool) {
	lo, hi := 0, len(h)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if h[mid].slot < slot {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(h) && h[lo].slot == slot
}

// length returns how much of the run the slot holds.
func (h holders) length(slot uint32) int {
	if i, ok := h.find(slot); ok {
		return int(h[i].length)
	}
	return 0
}

func (h *holders) insert(i int, v holder) { *h = slices.Insert(*h, i, v) }

func (h *holders) remove(i int) { *h = slices.Delete(*h, i, i+1) }

// longest returns the length of the longest holder.
func (h holders) longest() int {
	n := uint32(0)
	for i := range h {
		n = max(n, h[i].length)
	}
	return int(n)
}
