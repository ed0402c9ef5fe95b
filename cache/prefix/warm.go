package prefix

// Coming is a touch that will follow soon.
type Coming struct {
	Space *Namespace
	Slot  uint32
	Chain []uint64
}

// Together is how many touches Warm reads for: a processor waits for some ten places in memory at a time.
const Together = 16

// Warm reads the memory that the following touches will read. It goes down the trees with all of them level by level,
// so that the processor waits for all of a level at once. Each touch alone would wait for one node after the other.
// Warm changes nothing.
func (x *Index) Warm(all []Coming) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.forest.warm(all[:min(len(all), Together)])
}

// way records how far Warm has followed a touch.
type way struct {
	at    *node  // nil: to its end
	depth int    // blocks of the chain up to at's children
	entry *kid   // where the search for a child begins; nil if there is no table of them
	tail  uint32 // the record that the touch evicts
}

// warm returns a sum of what it read: without it the compiler would leave the reads out. The caller holds the lock.
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

// readEntries reads where the searches for the next nodes begin.
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

// goesOn reports whether the chain goes on after all of the node; the way then goes on from there.
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

// warmTails reads the nodes that the touches will evict: one for each touch whose worker is full.
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

// tailAfter returns the record after those that the touches before the i-th evict; 0 if there is none.
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
