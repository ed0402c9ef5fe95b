package holdings

import "github.com/warmpath/warmpath/cache/prefix"

// maxRun is the number of blocks after which a run goes on in a child: an offset fits into the 12 bits of a slot.
const maxRun = 1 << 12

// node is a run of blocks. It is never split and never joined, so (node, offset) names a block for as long as anybody
// holds it: a run is extended and cut at its end, and a child hangs at any offset.
type node struct {
	run    []uint64    // chained hashes; never empty but in a root
	last   uint64      // of run: a lookup of all of a cold run need not fetch it
	held   []holderRef // one for each worker that holds some of it, in no order
	shared *holder     // what the shared tier holds; nil = nothing
	parent *node       // nil in a root
	kids   kids
	at     uint16 // this node's offset in its parent
	// The run is as long as the larger of these two. Both are counted, or every removal would look at all holders.
	top, kidTop uint16 // end of what is held; highest offset of a child
	tops        uint32 // holders whose top is top
	kidTops     uint32 // children whose offset is kidTop
}

// kids are a node's children by the first hash of their run, which determines the offset too. Most nodes have none or
// one and need no map.
type kids struct {
	first uint64 // of one
	one   *node
	many  map[uint64]*node // two or more
}

func (k *kids) get(first uint64) *node {
	if k.many != nil {
		return k.many[first]
	}
	if k.first == first {
		return k.one
	}
	return nil
}

func (k *kids) each(visit func(*node)) {
	if k.one != nil {
		visit(k.one)
	}
	for _, n := range k.many {
		visit(n)
	}
}

func (k *kids) put(n *node) {
	switch {
	case k.many != nil:
		k.many[n.run[0]] = n
	case k.one == nil:
		k.one = n
		k.first = n.run[0]
	default:
		k.many = map[uint64]*node{k.first: k.one, n.run[0]: n}
		k.one = nil
	}
}

func (k *kids) remove(first uint64) {
	if k.many == nil {
		k.one = nil
		return
	}
	delete(k.many, first)
	if len(k.many) == 1 {
		for first, n := range k.many {
			k.one = n
			k.first = first
		}
		k.many = nil
	}
}

// common is the number of leading blocks that n's run and chain share; the first is known to be equal.
func (n *node) common(chain []uint64) int {
	if c := len(n.run); c <= len(chain) && chain[c-1] == n.last {
		return c
	}
	return prefix.Common(n.run, chain)
}

// extend appends to the run, with an eighth to spare: append's own rule would waste more than all holders take.
func (n *node) extend(more []uint64) {
	if need := len(n.run) + len(more); need > cap(n.run) {
		spare := 0
		if len(n.run) > 0 {
			spare = need / 8
		}
		n.run = append(make([]uint64, 0, need+spare), n.run...)
	}
	n.run = append(n.run, more...)
	n.last = more[len(more)-1]
}

// cut shortens the run. Half of the memory may stay unused, which makes cutting block by block cheap.
func (n *node) cut(keep int) {
	n.run = n.run[:keep]
	n.last = n.run[keep-1]
	if cap(n.run) > 2*keep+16 {
		n.run = append([]uint64(nil), n.run...)
	}
}

// adopt hangs a child at an offset.
func (n *node) adopt(kid *node, at int) {
	kid.parent = n
	kid.at = uint16(at)
	n.kids.put(kid)
	switch {
	case kid.at > n.kidTop || n.kidTops == 0:
		n.kidTop = kid.at
		n.kidTops = 1
	case kid.at == n.kidTop:
		n.kidTops++
	}
}

// disown takes a child away.
func (n *node) disown(kid *node) {
	n.kids.remove(kid.run[0])
	if kid.at != n.kidTop {
		return
	}
	n.kidTops--
	if n.kidTops > 0 {
		return
	}
	n.kidTop = 0
	n.kids.each(func(k *node) {
		switch {
		case k.at > n.kidTop || n.kidTops == 0:
			n.kidTop = k.at
			n.kidTops = 1
		case k.at == n.kidTop:
			n.kidTops++
		}
	})
}

// holder returns what a worker holds of the node, nil if it is nothing.
func (n *node) holder(slot uint32) *holder {
	if slot == Shared {
		return n.shared
	}
	for i := range n.held {
		if n.held[i].slot == slot {
			return n.held[i].h
		}
	}
	return nil
}

// join makes a holder that holds nothing yet.
func (n *node) join(slot uint32) *holder {
	h := &holder{node: n, slot: slot, at: uint32(len(n.held))}
	if slot == Shared {
		n.shared = h
	} else {
		n.held = append(n.held, holderRef{h: h, slot: slot})
	}
	return h
}

// leave takes a holder away that holds nothing any more.
func (n *node) leave(h *holder) {
	n.retop(h, 0)
	if h.slot == Shared {
		n.shared = nil
		return
	}
	end := len(n.held) - 1
	n.held[h.at] = n.held[end]
	n.held[h.at].h.at = h.at
	n.held[end] = holderRef{}
	n.held = n.held[:end]
	switch {
	case end == 0:
		n.held = nil
	case cap(n.held) > 4*end+8:
		n.held = append([]holderRef(nil), n.held...)
	}
}

// retop sets a holder's top, and the node's.
func (n *node) retop(h *holder, top uint16) {
	old := h.top
	h.top = top
	if top != old && old == n.top && old > 0 {
		n.tops--
	}
	switch {
	case top > n.top:
		n.top = top
		n.tops = 1
	case top == n.top && top != old && top > 0:
		n.tops++
	case n.tops == 0:
		n.findTop()
	}
}

func (n *node) findTop() {
	n.top = 0
	count := func(h *holder) {
		switch {
		case h.top > n.top:
			n.top = h.top
			n.tops = 1
		case h.top == n.top && h.top > 0:
			n.tops++
		}
	}
	for i := range n.held {
		count(n.held[i].h)
	}
	if n.shared != nil {
		count(n.shared)
	}
}
