package prefix

// node is a run of blocks without a branch. Every node but a namespace's root has at least one holder.
type node struct {
	run    []uint64 // chained hashes; never empty but in a root
	last   uint64   // of run: a lookup of all of a cold run need not read the run. In a root: the id of Index.Space
	held   holders
	only   [1]holder // memory for held: most nodes have one holder, and eviction reads memory long not read
	parent *node     // nil in a root
	kids   kids
}

// newNode makes a node without a run.
func newNode(parent *node) *node {
	n := &node{parent: parent}
	n.held = n.only[:0]
	return n
}

// renewed makes a leaf of an evicted node: a full index evicts one node for each that it adds, and the memory of the
// evicted one has just been read. The run's array stays if half of it will be used.
func (n *node) renewed(parent *node, run []uint64) *node {
	room := n.run[:0]
	*n = node{parent: parent}
	n.held = n.only[:0]
	if cap(room) < len(run) || cap(room) > 2*len(run)+16 {
		room = nil
	}
	n.set(append(room, run...))
	return n
}

// set gives the node its run, which is not empty.
func (n *node) set(run []uint64) {
	n.run = run
	n.last = run[len(run)-1]
}

// common returns the number of leading blocks that n's run and chain share; the caller knows that the first is equal.
func (n *node) common(chain []uint64) int {
	if c := len(n.run); c <= len(chain) && chain[c-1] == n.last {
		return c
	}
	return Common(n.run, chain)
}

// Common returns the number of leading blocks that run and chain share; the caller knows that the first is equal. A
// hash covers all blocks before it, so the shared part is all equal and the rest all different. Common compares the end
// first, which is enough in the usual case, and then searches binarily. For any input, both agree at Common-1 and
// differ at Common if both have it; this keeps the tree sound.
func Common(run, chain []uint64) int {
	n := min(len(run), len(chain))
	if run[n-1] == chain[n-1] {
		return n
	}
	lo, hi := 0, n-1 // equal at lo, different at hi
	for hi-lo > 1 {
		mid := int(uint(lo+hi) >> 1)
		if run[mid] == chain[mid] {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// grow appends blocks to a run with a quarter to spare: a conversation grows with every turn, and append's own rule
// would waste more memory than all holders take.
func grow(run, more []uint64) []uint64 {
	need := len(run) + len(more)
	if need > cap(run) {
		bigger := make([]uint64, len(run), need+need/4)
		copy(bigger, run)
		run = bigger
	}
	return append(run, more...)
}

// exact copies a run, so that no more memory is held than the run shows. An append to an empty slice takes the
// allocator's size, as make does, but does not clear it first: the clearing was a fifth of an insert of a long prompt.
func exact(run []uint64) []uint64 { return append([]uint64(nil), run...) }

// cut shortens the run to the longest holder. Half of the memory may stay unused, which makes cutting block by block
// cheap.
func (n *node) cut() {
	keep := n.held.longest()
	if keep == len(n.run) {
		return
	}
	n.set(n.run[:keep])
	if cap(n.run) > 2*keep+16 {
		n.run = exact(n.run)
	}
}
