package prefix

import (
	"fmt"
	"slices"
)

// check verifies the invariants of forest, and every counter.
func (x *Index) check() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	nodes, seen := 0, make([]int, len(x.workers))
	recs := make([]int, len(x.workers))
	var err error
	x.names.tree.Walk(func(name string, v any) bool {
		err = x.checkNode(&v.(*Namespace).root, &nodes, seen, recs)
		if err != nil {
			err = fmt.Errorf("namespace %q: %w", name, err)
		}
		return err != nil
	})
	if err != nil {
		return err
	}
	if nodes != x.nodes {
		return fmt.Errorf("%d nodes; counted as %d", nodes, x.nodes)
	}
	for slot := range x.workers {
		if err := x.checkWorker(slot, seen[slot], recs[slot]); err != nil {
			return fmt.Errorf("worker %d: %w", slot, err)
		}
	}
	return nil
}

func (x *Index) checkNode(n *node, nodes *int, seen, recs []int) error {
	if n.parent != nil {
		*nodes++
		if len(n.held) == 0 || n.held.longest() != len(n.run) {
			return fmt.Errorf("run of %d, longest of %d holders %d", len(n.run), len(n.held), n.held.longest())
		}
		if cap(n.run) > 2*len(n.run)+64 {
			return fmt.Errorf("run of %d pins %d", len(n.run), cap(n.run))
		}
	}
	last := -1
	for _, h := range n.held {
		if int(h.slot) <= last {
			return fmt.Errorf("slot %d after %d", h.slot, last)
		}
		last = int(h.slot)
		seen[h.slot] += int(h.length)
		recs[h.slot]++
		w := &x.workers[h.slot]
		if w.recs[h.rec].node != n {
			return fmt.Errorf("slot %d: record of another node", h.slot)
		}
		if h.length == 0 {
			return fmt.Errorf("slot %d holds nothing", h.slot)
		}
		if up := n.parent; up.parent != nil && up.held.length(h.slot) != len(up.run) {
			return fmt.Errorf("slot %d holds a child and %d of %d of its parent", h.slot, up.held.length(h.slot), len(up.run))
		}
	}
	all := slices.Collect(n.kids.all)
	if many := n.kids.many; many != nil && (n.kids.one != nil || many.size() < 2 || many.size() != len(all)) {
		return fmt.Errorf("kids: one %p, many %d of %d", n.kids.one, len(all), many.size())
	}
	for _, k := range all {
		if n.kids.get(k.run[0]) != k {
			return fmt.Errorf("child under another's hash")
		}
		if k.parent != n {
			return fmt.Errorf("child with another parent")
		}
		if err := x.checkNode(k, nodes, seen, recs); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) checkWorker(slot, blocks, recs int) error {
	w := &x.workers[slot]
	if w.blocks != blocks || w.blocks > w.capacity {
		return fmt.Errorf("%d blocks; counted as %d, capacity %d", blocks, w.blocks, w.capacity)
	}
	if blocks == 0 {
		if w.recs != nil {
			return fmt.Errorf("holds nothing and keeps %d records", len(w.recs))
		}
		return nil
	}
	n, place, stamp := 0, map[*node]int{}, int64(-1<<63)
	for r := w.tail(); r != 0; r = w.recs[r].newer {
		n++
		rec := w.recs[r]
		if rec.stamp < stamp || w.recs[rec.newer].older != r {
			return fmt.Errorf("record %d: out of order", r)
		}
		stamp = rec.stamp
		place[rec.node] = n
		for k := range rec.node.kids.all {
			if place[k] == 0 && k.held.length(uint32(slot)) > 0 {
				return fmt.Errorf("a child is newer than its parent")
			}
		}
	}
	free := 0
	for r := w.free; r != 0; r = w.recs[r].older {
		free++
	}
	if n != recs || n+free+1 != len(w.recs) {
		return fmt.Errorf("%d records, %d in the ring, %d free of %d", recs, n, free, len(w.recs))
	}
	return nil
}

// drop drops a namespace by its name, as a new namespace does when there are too many.
func (x *Index) drop(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := x.names.get(name); n != nil {
		x.forget(n)
	}
}
