package prefix

import "sync"

// forest holds trees of runs, and which worker holds what in them. It is changed under its lock. Three things are
// always true, and check in check_test.go proves them:
//
//   - A worker that holds any block of a node holds all blocks of the node's parents, and its records there are newer.
//   - A run is as long as its longest holder, so a node without holders is removed.
//   - No two children of a node start with the same hash.
type forest struct {
	mu       sync.RWMutex // guards all below, all trees and all holders, and Index's directory; see doc.go
	workers  []worker
	spare    *node // the last evicted node, or nil: memory for the next
	nodes    int   // without the roots
	maxNodes int
	evicted  uint64 // pairs dropped because a worker's capacity was reached
	crowded  uint64 // pairs dropped because there were too many nodes or namespaces
}

// maxSpare bounds the hashes of a spare node's run that stay allocated: 32 KB.
const maxSpare = 4096

// split cuts n after c blocks, 0 < c < len(n.run), and returns the new upper part. The upper part is the new node, so
// that the children of n, which may be thousands, stay in place.
func (f *forest) split(n *node, c int) *node {
	up := newNode(n.parent)
	up.set(exact(n.run[:c]))
	up.parent.kids.put(up) // while n's first hash is still up's
	n.set(exact(n.run[c:]))
	up.held = append(up.held, n.held...)
	below := n.held[:0]
	for i, h := range n.held {
		w := &f.workers[h.slot]
		if int(h.length) <= c {
			w.recs[h.rec].node = up
			continue
		}
		r := w.take(up, w.recs[h.rec].stamp)
		w.link(r, h.rec) // the upper part comes after the lower
		up.held[i].length = uint32(c)
		up.held[i].rec = r
		h.length -= uint32(c)
		below = append(below, h)
	}
	n.held = below
	up.kids.put(n)
	n.parent = up
	f.nodes++
	return up
}

// joins reports whether up and its only child n may become one node: every worker that holds some of n has touched both
// together. Otherwise the order of eviction would change.
func (f *forest) joins(up, n *node) bool {
	if up.kids.one != n || up.parent == nil {
		return false
	}
	for _, h := range n.held {
		recs := f.workers[h.slot].recs
		newer := recs[h.rec].newer
		if recs[newer].node != up || recs[newer].stamp != recs[h.rec].stamp {
			return false
		}
	}
	return true
}

// join undoes a split that is no longer needed: n takes up's blocks and place.
func (f *forest) join(up, n *node) {
	n.set(grow(up.run, n.run))
	for _, h := range up.held {
		w := &f.workers[h.slot]
		i, ok := n.held.find(h.slot)
		if ok {
			n.held[i].length += h.length
			w.drop(h.rec)
			continue
		}
		w.recs[h.rec].node = n
		n.held.insert(i, h)
	}
	n.parent = up.parent
	n.parent.kids.put(n)
	f.nodes--
}

// hold makes the worker a holder of the first c blocks of n. It holds no more than that before: split has ensured it.
func (f *forest) hold(n *node, slot uint32, c int, now int64) {
	w := &f.workers[slot]
	i, ok := n.held.find(slot)
	if ok {
		w.blocks += c - int(n.held[i].length)
		n.held[i].length = uint32(c)
		return
	}
	w.blocks += c
	n.held.insert(i, holder{slot: slot, length: uint32(c), rec: w.add(n, now)})
}

// shorten removes up to over blocks from the end of the worker's oldest holding, and returns how many.
func (f *forest) shorten(slot uint32, over int) int {
	w := &f.workers[slot]
	n := w.recs[w.tail()].node
	i, _ := n.held.find(slot)
	k := min(over, int(n.held[i].length))
	f.reduce(n, slot, i, k)
	return k
}

// reduce removes k blocks from the end of a holding, which is the i-th of n. The worker holds nothing below n.
func (f *forest) reduce(n *node, slot uint32, i, k int) {
	w := &f.workers[slot]
	had := int(n.held[i].length)
	w.blocks -= k
	if k < had {
		n.held[i].length -= uint32(k)
	} else {
		r := n.held[i].rec
		n.held.remove(i)
		w.drop(r)
	}
	if len(n.held) == 0 {
		n.parent.kids.remove(n.run[0])
		f.nodes--
		if cap(n.run) <= maxSpare {
			f.spare = n
		}
	} else if had == len(n.run) && n.kids.none() {
		n.cut()
	}
}

// trim evicts the blocks beyond the worker's capacity, oldest first and each chain from its end.
func (f *forest) trim(slot uint32) {
	w := &f.workers[slot]
	for w.blocks > w.capacity {
		f.evicted += uint64(f.shorten(slot, w.blocks-w.capacity))
	}
}

// crowd drops the oldest holdings of the fleet until there are at most maxNodes. For each it compares all workers,
// which takes a few microseconds. A touch adds at most three nodes.
func (f *forest) crowd() {
	for f.nodes > f.maxNodes {
		oldest, at := -1, int64(0)
		for i := range f.workers {
			w := &f.workers[i]
			if w.blocks == 0 {
				continue
			}
			if s := w.recs[w.tail()].stamp; oldest < 0 || s < at {
				oldest = i
				at = s
			}
		}
		f.crowded += uint64(f.shorten(uint32(oldest), f.workers[oldest].blocks))
	}
}

// prune removes every holder below n from its worker's LRU. The tree may be deep, so prune keeps its own stack.
func (f *forest) prune(root *node) {
	stack := []*node{root}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, h := range n.held {
			w := &f.workers[h.slot]
			w.blocks -= int(h.length)
			w.drop(h.rec)
			f.crowded += uint64(h.length)
		}
		if n.parent != nil {
			f.nodes--
		}
		for k := range n.kids.all {
			stack = append(stack, k)
		}
	}
}
