package prefix

// readRecords and readBlocks bound how much a cursor reads under one lock: 64 KB to copy, and as many nodes as memory
// delivers in some ten microseconds. One chain may be longer.
const (
	readRecords = 128
	readBlocks  = 8 << 10
)

// cursor walks a worker's LRU from the newest record to the oldest, some at a time. Between two reads the list may
// change.
type cursor struct {
	slot  uint32
	until int64 // stamp; the cursor skips records that were touched then or before
	at    uint32
	last  rec // the record at at when it was read; its node is nil before the first read

	found  []held // by the last read
	blocks []uint64
}

// held is a chain that the worker holds; its hashes are a part of the cursor's blocks.
type held struct {
	space    uint64
	from, to int
	stamp    int64
}

// read reads the next records into found. It reports whether there may be more. The caller holds the lock.
func (c *cursor) read(f *forest) bool {
	c.found, c.blocks = c.found[:0], c.blocks[:0]
	w := &f.workers[c.slot]
	if w.recs == nil {
		return false
	}
	for r, n := c.next(w), 0; r != 0 && w.recs[r].stamp > c.until; r = w.recs[r].older {
		c.at, c.last = r, w.recs[r]
		if !w.withChild(r) {
			c.take(w, r)
		}
		n++
		if n >= readRecords || len(c.blocks) >= readBlocks {
			return true
		}
	}
	return false
}

// next returns the record that follows the last one read. If that one was touched or dropped meanwhile, next returns
// the newest record that is older than it.
func (c *cursor) next(w *worker) uint32 {
	if c.last.node == nil {
		return w.recs[0].older
	}
	if int(c.at) < len(w.recs) && w.recs[c.at].node == c.last.node && w.recs[c.at].stamp == c.last.stamp {
		return w.recs[c.at].older
	}
	r := w.recs[0].older
	for r != 0 && w.recs[r].stamp >= c.last.stamp {
		r = w.recs[r].older
	}
	return r
}

// withChild reports whether the next older record is of a child of r's node, touched together with it: a touch links a
// chain's nodes from leaf to root.
func (w *worker) withChild(r uint32) bool {
	older := w.recs[r].older
	return older != 0 && w.recs[older].stamp == w.recs[r].stamp && w.recs[older].node.parent == w.recs[r].node
}

// take adds the chain up to the last block that the worker holds of r's node.
func (c *cursor) take(w *worker, r uint32) {
	n := w.recs[r].node
	size := n.held.length(c.slot)
	root := n
	for root.parent != nil {
		root = root.parent
		size += len(root.run)
	}
	if root.last == 0 { // a namespace that was made by a name
		return
	}
	from := len(c.blocks)
	c.blocks = append(c.blocks, make([]uint64, size)...)
	end := len(c.blocks)
	part := n.run[:n.held.length(c.slot)]
	for {
		end -= len(part)
		copy(c.blocks[end:], part)
		n = n.parent
		if n.parent == nil {
			break
		}
		part = n.run
	}
	c.found = append(c.found, held{space: root.last, from: from, to: len(c.blocks), stamp: w.recs[r].stamp})
}
