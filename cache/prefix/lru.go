package prefix

// worker is one slot: its capacity and its holdings in order of use. The records stand in one array and refer to each
// other by index, so that a fleet's holdings are a few hundred objects for the garbage collector, and not millions.
type worker struct {
	capacity int
	blocks   int   // sum of the lengths of its holders
	recs     []rec // recs[0] is the ring's anchor: newer = tail, older = head; nil while nothing is held
	free     uint32
}

// rec is a holder's place in its worker's LRU. All blocks of a holder were last touched together. Eviction removes them
// from the end.
type rec struct {
	node         *node // nil: free, and older is the next free one
	stamp        int64 // of the last touch
	older, newer uint32
}

func (w *worker) tail() uint32 { return w.recs[0].newer }

// add allocates a record and links it as the newest of the records touched by stamp.
func (w *worker) add(n *node, stamp int64) uint32 {
	r := w.take(n, stamp)
	w.link(r, w.newestBy(stamp))
	return r
}

// take allocates a record, which the caller links.
func (w *worker) take(n *node, stamp int64) uint32 {
	if w.recs == nil {
		w.recs = make([]rec, 1, 8)
	}
	r := w.free
	if r != 0 {
		w.free = w.recs[r].older
	} else {
		r = uint32(len(w.recs))
		w.recs = append(w.recs, rec{})
	}
	w.recs[r] = rec{node: n, stamp: stamp}
	return r
}

// newestBy returns the newest record that was touched by stamp. Newer ones exist only if the touch was reported late.
func (w *worker) newestBy(stamp int64) uint32 {
	at := w.recs[0].older
	for at != 0 && w.recs[at].stamp > stamp {
		at = w.recs[at].older
	}
	return at
}

// link puts r just newer than at.
func (w *worker) link(r, at uint32) {
	newer := w.recs[at].newer
	w.recs[r].older = at
	w.recs[r].newer = newer
	w.recs[at].newer = r
	w.recs[newer].older = r
}

func (w *worker) unlink(r uint32) {
	older, newer := w.recs[r].older, w.recs[r].newer
	w.recs[older].newer = newer
	w.recs[newer].older = older
}

// refresh makes r the newest of the records touched by stamp, unless r was touched since.
func (w *worker) refresh(r uint32, stamp int64) {
	if w.recs[r].stamp > stamp {
		return
	}
	w.unlink(r)
	w.link(r, w.newestBy(stamp))
	w.recs[r].stamp = stamp
}

// drop frees r. It frees the array when the last record goes.
func (w *worker) drop(r uint32) {
	w.unlink(r)
	if w.recs[0].newer == 0 {
		w.recs = nil
		w.free = 0
		return
	}
	w.recs[r] = rec{older: w.free}
	w.free = r
}
