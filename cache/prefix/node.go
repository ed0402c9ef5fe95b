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

// kids are a node's children by the first hash of their run. Most nodes have none or one and need no map.
type kids struct {
	one  *node
	many map[uint64]*node // two or more
}

func (k *kids) none() bool { return k.one == nil && k.many == nil }

func (k *kids) get(first uint64) *node {
	if k.many != nil {
		return k.many[first]
	}
	if k.one != nil && k.one.run[0] == first {
		return k.one
	}
	return nil
}

// put adds n, or sets it in the place of the child with the same first hash.
func (k *kids) put(n *node) {
	switch {
	case k.many != nil:
		k.many[n.run[0]] = n
	case k.one == nil || k.one.run[0] == n.run[0]:
		k.one = n
	default:
		k.many = map[uint64]*node{k.one.run[0]: k.one, n.run[0]: n}
		k.one = nil
	}
}

// remove takes away the child whose run starts with first.
func (k *kids) remove(first uint64) {
	if k.many == nil {
		k.one = nil
		return
	}
	delete(k.many, first)
	if len(k.many) == 1 {
		for _, n := range k.many {
			k.one = n
		}
		k.many = nil
	}
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

// grow appends blocks to a run with an eighth to spare: a conversation grows every turn, and append's own rule would
// waste more memory than all holders take.
func grow(run, more []uint64) []uint64 {
	need := len(run) + len(more)
	if need > cap(run) {
		bigger := make([]uint64, len(run), need+need/8)
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
