package prefix

// Coming is a touch that is about to be done.
type Coming struct {
	Space *Namespace
	Slot  uint32
	Chain []uint64
}

// Together is how many touches Warm heeds: a processor waits for some ten places in memory at a time.
const Together = 16

// Warm reads what touches that are about to be done will read. It goes down the trees with all of them level by level,
// so that the processor waits for all of a level at once, where each touch would wait for one node after the other. It
// changes nothing.
func (x *Index) Warm(all []Coming) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.forest.warm(all[:min(len(all), Together)])
}

// way is how far the way of a touch was followed.
type way struct {
	at    *node  // nil: to its end
	depth int    // blocks of the chain up to at's children
	entry *kid   // where the look for a child begins; nil if there is no table of them
	tail  uint32 // what the touch evicts
}

// warm returns a sum of what it read, or the compiler would leave the reading out. The lock is held.
func (f *forest) warm(all []Coming) (sum uint64) {
	var room [Together]way
	ways, live := room[:len(all)], 0
	for i := range all {
		if c := &all[i]; len(c.Chain) > 0 && int(c.Slot) < len(f.workers) {
			ways[i].at = &c.Space.root
			live++
		}
	}
	for live > 0 {
		sum += readEntries(all, ways)
		for i := range ways {
			if w := &ways[i]; w.at != nil {
				w.at = w.at.kids.get(all[i].Chain[w.depth])
				if w.at != nil {
					sum += w.at.last + w.at.kids.first
				}
			}
		}
		live = 0
		for i := range ways {
			if w := &ways[i]; w.at != nil {
				sum += f.readRecord(w.at, all[i].Slot)
				if w.goesOn(all[i].Chain) {
					live++
				}
			}
		}
	}
	return sum + f.warmTails(all, ways)
}

// readEntries reads where the next nodes are looked for.
func readEntries(all []Coming, ways []way) (sum uint64) {
	for i := range ways {
		if w := &ways[i]; w.at != nil {
			w.entry = w.at.kids.entry(all[i].Chain[w.depth])
		}
	}
	for i := range ways {
		if w := &ways[i]; w.at != nil && w.entry != nil {
			sum += w.entry.first
		}
	}
	return sum
}

// goesOn reports whether the chain goes on after all of the node, where the way is from now on.
func (w *way) goesOn(chain []uint64) bool {
	w.depth += len(w.at.run)
	if w.depth >= len(chain) || chain[w.depth-1] != w.at.last {
		w.at = nil
	}
	return w.at != nil
}

func (f *forest) readRecord(n *node, slot uint32) uint64 {
	if i, ok := n.held.find(slot); ok {
		return uint64(f.workers[slot].recs[n.held[i].rec].stamp)
	}
	return 0
}

// warmTails reads what the touches will evict: each a node, if its worker is full.
func (f *forest) warmTails(all []Coming, ways []way) (sum uint64) {
	for i := range all {
		if int(all[i].Slot) < len(f.workers) {
			ways[i].tail = f.tailAfter(all, ways, i)
		}
	}
	for i := range ways {
		if w := &ways[i]; w.tail != 0 {
			w.at = f.workers[all[i].Slot].recs[w.tail].node
		}
	}
	for i := range ways {
		if w := &ways[i]; w.at != nil {
			sum += w.at.last + w.at.kids.first
		}
	}
	for i := range ways {
		if w := &ways[i]; w.at != nil {
			w.entry = w.at.parent.kids.entry(w.at.run[0])
		}
	}
	for i := range ways {
		if w := &ways[i]; w.at != nil && w.entry != nil {
			sum += w.entry.first
		}
	}
	return sum
}

// tailAfter returns the record that goes after those that the touches before the i-th evict; 0 if none does.
func (f *forest) tailAfter(all []Coming, ways []way, i int) uint32 {
	w := &f.workers[all[i].Slot]
	if w.blocks == 0 || w.blocks+len(all[i].Chain) <= w.capacity {
		return 0
	}
	for k := i - 1; k >= 0; k-- {
		if all[k].Slot == all[i].Slot && ways[k].tail != 0 {
			return w.recs[ways[k].tail].newer
		}
	}
	return w.tail()
}
