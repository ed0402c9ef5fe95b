package holdings

import (
	"sync"
	"sync/atomic"

	"github.com/warmpath/warmpath/cache/prefix"
)

// plane is the tree of one adapter, salt and block size.
type plane struct {
	key   string // of the directory
	size  int    // tokens a block
	total *atomic.Int64

	mu    sync.RWMutex // guards all below, and every node and holder of the tree
	root  node
	nodes int
	gone  bool // it was empty and is out of the directory, so nothing may be added
}

// step goes from a place (n, off), where off is the offset at which the chain goes on, along the leading blocks of
// chain, which is not empty. It returns the node and its part from..to-1 that are these blocks, and makes them if they
// are not there. Who calls it holds the last of them, or prunes.
func (p *plane) step(n *node, off int, chain []uint64) (next *node, from, to int) {
	if off < len(n.run) && n.run[off] == chain[0] {
		return n, off, off + prefix.Common(n.run[off:], chain)
	}
	if kid := n.kids.get(chain[0]); kid != nil {
		return kid, 0, kid.common(chain)
	}
	if n != &p.root && off == len(n.run) && off < maxRun {
		to := min(maxRun, off+len(chain))
		n.extend(chain[:to-off])
		p.total.Add(int64(to - off))
		return n, off, to
	}
	kid := &node{}
	kid.extend(chain[:min(maxRun, len(chain))])
	n.adopt(kid, off)
	p.nodes++
	p.total.Add(int64(len(kid.run)))
	return kid, 0, len(kid.run)
}

// prune frees the unneeded part of a node: the end of its run, or all of it and then of its parents.
func (p *plane) prune(n *node) {
	for n != &p.root {
		keep := int(max(n.top, n.kidTop))
		p.total.Add(int64(keep - len(n.run)))
		if keep > 0 {
			if keep < len(n.run) {
				n.cut(keep)
			}
			return
		}
		p.nodes--
		n.parent.disown(n)
		n = n.parent
	}
}

// release takes a holder away if it holds nothing any more, and prunes its node.
func (p *plane) release(h *holder) {
	n := h.node
	if h.empty() {
		n.leave(h)
	}
	if int(max(n.top, n.kidTop)) < len(n.run) {
		p.prune(n)
	}
}

// cell is how far one worker has got in a lookup, in blocks: on the GPU; there or in Local.
type cell struct{ gpu, both uint32 }

// stop is one node on the way of a lookup.
type stop struct {
	n             *node
	start, shared int // blocks before the node; blocks of the chain in it
}

// part returns the number of leading blocks that n's run and chain share, and the child into which chain goes on there.
// A child at the highest offset, where most hang, decides it without reading the run.
func (n *node) part(chain []uint64) (shared int, next *node) {
	if top := int(n.kidTop); n.kidTops > 0 && top < len(chain) {
		if kid := n.kids.get(chain[top]); kid != nil {
			return top, kid
		}
	}
	shared = n.common(chain)
	if n.kidTops > 0 && shared < len(chain) && shared < int(n.kidTop) {
		next = n.kids.get(chain[shared])
	}
	return shared, next
}

// follow walks down the chain and brings the cells up to date. There is one cell for each slot. It counts the first
// limit blocks. It appends to way the nodes that it passes, and reports whether the shared tier holds a part of one of
// them. The caller holds a read lock.
func (p *plane) follow(chain []uint64, limit int, cells []cell, way []stop) ([]stop, bool) {
	tiered := false
	cur := p.root.kids.get(chain[0])
	for d := 0; cur != nil && d < limit; {
		c, next := cur.part(chain[d:])
		way = append(way, stop{n: cur, start: d, shared: min(c, limit-d)})
		tiered = tiered || cur.shared != nil
		start, most := uint32(d), uint32(min(c, limit-d))
		held := cur.held
		for i := range held {
			e := &held[i]
			if int(e.slot) >= len(cells) {
				continue
			}
			// A hole above ends it: who lacks a block before this node has not got this far.
			at := &cells[e.slot]
			if at.gpu == start {
				at.gpu += min(uint32(e.gpu), most)
			}
			if at.both == start {
				at.both += min(uint32(e.both), most)
			}
		}
		d += c
		cur = next
	}
	return way, tiered
}

// cover fills all, which is by slot: a block counts that is in any tier of the worker or in the shared one.
func cover(way []stop, all []uint32) {
	for _, s := range way {
		var shared bitmap
		base := 0
		if s.n.shared != nil {
			shared = s.n.shared.bits[GPU]
			base = min(int(s.n.shared.gpu), s.shared)
		}
		for i := range s.n.held {
			e := &s.n.held[i]
			if int(e.slot) >= len(all) || int(all[e.slot]) != s.start {
				continue
			}
			far := int(e.both)
			if shared.has(far) {
				far = e.h.lead(far, e.h.bits[Local], shared)
			}
			all[e.slot] += uint32(min(far, s.shared))
		}
		if base == 0 {
			continue
		}
		for i := range all { // who holds nothing here has the shared tier still
			if int(all[i]) == s.start {
				all[i] += uint32(base)
			}
		}
	}
}
