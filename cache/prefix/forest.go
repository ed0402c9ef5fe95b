package prefix

// Changes of a tree's shape. The lock is held. Three things are always true, and check in check_test.go proves them:
//
//   - A worker that holds anything of a node holds all of the node's parents, and its records there are newer.
//   - A run is as long as its longest holder, so a node without holders is gone.
//   - No two children of a node start with the same hash.

// split cuts n after c blocks, 0 < c < len(n.run), and returns the new upper part. The new node is the upper one, so that
// the children of n, which may be thousands, stay as they are.
func (x *Index) split(n *node, c int) *node {
	up := &node{parent: n.parent}
	up.set(exact(n.run[:c]))
	up.parent.kids.put(up) // while n's first hash is still up's
	n.set(exact(n.run[c:]))
	up.held = make(holders, len(n.held))
	copy(up.held, n.held)
	below := n.held[:0]
	for i, h := range n.held {
		w := &x.workers[h.slot]
		if int(h.length) <= c {
			w.recs[h.rec].node = up
			continue
		}
		r := w.add(up, w.recs[h.rec].stamp)
		w.unlink(r)
		w.link(r, h.rec) // the upper part goes after the lower
		up.held[i].length, up.held[i].rec = uint32(c), r
		h.length -= uint32(c)
		below = append(below, h)
	}
	n.held = below
	up.kids.one, n.parent = n, up
	x.nodes++
	return up
}

// joins says whether up and its only child n may become one node: every worker that holds some of n must have touched both
// together, else the order of eviction would change.
func (x *Index) joins(up, n *node) bool {
	if up.kids.one != n || up.parent == nil {
		return false
	}
	for _, h := range n.held {
		recs := x.workers[h.slot].recs
		newer := recs[h.rec].newer
		if recs[newer].node != up || recs[newer].stamp != recs[h.rec].stamp {
			return false
		}
	}
	return true
}

// join undoes a split that is no longer needed: n takes up's blocks and place.
func (x *Index) join(up, n *node) {
	n.set(grow(up.run, n.run))
	for _, h := range up.held {
		w := &x.workers[h.slot]
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
	x.nodes--
}

// hold makes the worker a holder of the first c blocks of n. It holds no more than that now: split has seen to it.
func (x *Index) hold(n *node, slot uint32, c int, now int64) {
	w := &x.workers[slot]
	i, ok := n.held.find(slot)
	if ok {
		w.blocks += c - int(n.held[i].length)
		n.held[i].length = uint32(c)
		return
	}
	w.blocks += c
	n.held.insert(i, holder{slot: slot, length: uint32(c), rec: w.add(n, now)})
}

// shorten takes up to over blocks from the end of the worker's oldest holding, and returns how many.
func (x *Index) shorten(slot uint32, over int) int {
	w := &x.workers[slot]
	r := w.tail()
	n := w.recs[r].node
	i, _ := n.held.find(slot)
	had := int(n.held[i].length)
	k := min(over, had)
	w.blocks -= k
	if k < had {
		n.held[i].length -= uint32(k)
	} else {
		n.held.remove(i)
		w.drop(r)
	}
	if len(n.held) == 0 {
		n.parent.kids.remove(n.run[0])
		x.nodes--
	} else if had == len(n.run) && n.kids.none() {
		n.cut()
	}
	return k
}

// trim evicts what the worker holds beyond its capacity, oldest first and each chain from its end.
func (x *Index) trim(slot uint32) {
	w := &x.workers[slot]
	for w.blocks > w.capacity {
		x.evicted += uint64(x.shorten(slot, w.blocks-w.capacity))
	}
}

// crowd drops the fleet's oldest holdings until the nodes are within bounds. It looks at every worker for each, a few
// microseconds, and a touch adds no more than three nodes.
func (x *Index) crowd() {
	for x.nodes > x.maxNodes {
		oldest, at := -1, int64(0)
		for i := range x.workers {
			w := &x.workers[i]
			if w.blocks == 0 {
				continue
			}
			if s := w.recs[w.tail()].stamp; oldest < 0 || s < at {
				oldest, at = i, s
			}
		}
		x.crowded += uint64(x.shorten(uint32(oldest), x.workers[oldest].blocks))
	}
}
