package prefix

// touched describes what a touch found in the tree.
type touched struct {
	found int   // leading blocks that the worker already held
	stamp int64 // of the last of them, before this touch
}

// touch makes the worker a holder of the whole chain. It touches the blocks from the leaf to the root, vLLM's order, so
// that the end of the chain is evicted first. Then it evicts the worker's oldest blocks beyond its capacity, of any
// tree. The caller holds the lock.
func (f *forest) touch(root *node, slot uint32, chain []uint64, now int64) touched {
	w := &f.workers[slot]
	if len(chain) > w.capacity {
		chain = chain[:w.capacity] // the rest would be evicted first
	}
	leaf, t := f.enter(root, slot, chain, now)
	var below *node
	for n := leaf; n.parent != nil; n = n.parent {
		i, _ := n.held.find(slot)
		w.refresh(n.held[i].rec, now)
		if below != nil && f.joins(n, below) {
			f.join(n, below)
			n = below
		}
		below = n
	}
	f.trim(slot)
	f.crowd()
	return t
}

// enter makes the worker a holder of all of chain and returns the node where chain ends.
func (f *forest) enter(root *node, slot uint32, chain []uint64, now int64) (*node, touched) {
	var t touched
	cur := root
	for d := 0; d < len(chain); {
		next := cur.kids.get(chain[d])
		if next == nil {
			return f.extend(cur, slot, chain[d:], now), t
		}
		c := next.common(chain[d:])
		had := next.held.length(slot)
		since := had > 0 && f.touchedSince(next, slot, now)
		if since && had < c { // held blocks keep their newer place, and added ones get their own
			c = had
		}
		// A chain that ends inside the run needs no node of its own, unless the worker's blocks after the end keep their
		// older place.
		if c < len(next.run) && (d+c < len(chain) || had > c && !since) {
			next = f.split(next, c)
			had = min(had, c)
		}
		if had > 0 && t.found == d {
			i, _ := next.held.find(slot)
			t.found += had
			t.stamp = f.workers[slot].recs[next.held[i].rec].stamp
		}
		if had < c {
			f.hold(next, slot, c, now)
		}
		d += c
		cur = next
	}
	return cur, t
}

// touchedSince reports whether the blocks that the worker holds of n were touched after now: the present touch was
// reported late. The worker holds some.
func (f *forest) touchedSince(n *node, slot uint32, now int64) bool {
	i, _ := n.held.find(slot)
	return f.workers[slot].recs[n.held[i].rec].stamp > now
}

// extend adds blocks after cur: to its own run if nothing else follows there, else as a child.
func (f *forest) extend(cur *node, slot uint32, more []uint64, now int64) *node {
	if cur.parent != nil && cur.kids.none() && !f.touchedSince(cur, slot, now) {
		cur.set(grow(cur.run, more))
		f.hold(cur, slot, len(cur.run), now)
		return cur
	}
	leaf := f.leaf(cur, more)
	f.hold(leaf, slot, len(more), now)
	cur.kids.put(leaf)
	f.nodes++
	return leaf
}

// leaf makes a node below cur, in the memory of the last evicted node if there is one.
func (f *forest) leaf(cur *node, run []uint64) *node {
	if n := f.spare; n != nil {
		f.spare = nil
		return n.renewed(cur, run)
	}
	n := newNode(cur)
	n.set(exact(run))
	return n
}

// retract removes the worker's holdings of chain from its end up to the blocks that it held before. The caller holds
// the lock.
func (f *forest) retract(root *node, slot uint32, chain []uint64, held int, at int64) {
	last, before, shared := deepest(root, chain)
	for last != nil && last.parent != nil && before+shared > held {
		i, ok := last.held.find(slot)
		if ok {
			keep := max(0, held-before)
			length := int(last.held[i].length)
			if length > shared || f.workers[slot].recs[last.held[i].rec].stamp > at || last.heldBelow(slot) {
				return
			}
			f.reduce(last, slot, i, max(0, length-keep))
		}
		last = last.parent
		shared = len(last.run)
		before -= shared
	}
}

// heldBelow reports whether the worker holds anything of a child.
func (n *node) heldBelow(slot uint32) bool {
	for k := range n.kids.all {
		if _, ok := k.held.find(slot); ok {
			return true
		}
	}
	return false
}
