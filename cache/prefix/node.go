package prefix

// node is a run of blocks without a branch. Every node but a namespace's root has at least one holder.
type node struct {
	run    []uint64 // chained hashes; never empty but in a root
	last   uint64   // of run: a lookup of all of a cold run need not fetch it. In a root: the id of Index.Space
	held   holders
	only   [1]holder // room for held: most nodes have one holder, and what evicts them reads memory long not read
	parent *node     // nil in a root
	kids   kids
}

// newNode makes a node without a run.
func newNode(parent *node) *node {
	n := &node{parent: parent}
	n.held = n.only[:0]
	return n
}

// renewed makes a leaf of a node that was evicted: a full index gives one away for each that it takes, and its memory
// has just been read. The run's array stays if half of it will be used.
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

// common is the number of leading blocks that n's run and chain share; the first is known to be equal.
func (n *node) common(chain []uint64) int {
	if c := len(n.run); c <= len(chain) && chain[c-1] == n.last {
		return c
	}
	return Common(n.run, chain)
}

// Common is the number of leading blocks that run and chain share; the first is known to be equal. Since a hash covers
// all blocks before it, the shared part is all equal and the rest all different: the end is probed first, which settles
// the usual case, then it is a binary search. Whatever the input, Common-1 agrees and Common, if both have it, differs,
// which is what keeps the tree sound.
func Common(run, chain []uint64) int {
	n := min(len(run), len(chain))
	if run[n-1] == chain[n-1] {
		return n
	}
	lo, hi := 0, n-1 // lo agrees, hi differs
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

// grow appends blocks to a run with a quarter to spare: a conversation grows every turn, and append's own rule would
// waste more memory than all holders take.
func grow(run, more []uint64) []uint64 {
	need := len(run) + len(more)
	if need > cap(run) {
		bigger := make([]uint64, len(run), need+need/4)
		copy(bigger, run)
		run = bigger
	}
	return append(run, more...)
}

// exact copies a run, so that nothing pins more memory than it shows. An append to nothing takes the allocator's size,
// as make does, but does not clear it first: that was a fifth of an insert of a long prompt.
func exact(run []uint64) []uint64 { return append([]uint64(nil), run...) }

// cut shortens the run to what is still held. Half of the memory may stay unused, which makes cutting block by block
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
