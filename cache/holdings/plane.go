package holdings

import (
	"sync"
	"sync/atomic"
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
		return n, off, off + common(n.run[off:], chain)
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

// prune gives back what nobody needs of a node: the end of its run, or all of it and then of its parents.
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

// cell is how far one worker has got in a lookup, in blocks: on the GPU; there or in Local; with the shared tier too.
type cell struct{ gpu, both, all uint32 }

// stop is one node on the way of a lookup.
type stop struct {
	n             *node
	start, shared int // blocks before the node; blocks of the chain in it
}

// follow walks down the chain and brings the cells up to date, which are by slot. It appends the nodes passed to way
// and reports whether the shared tier holds something of one. A read lock is held.
func (p *plane) follow(chain []uint64, cells []cell, way []stop) ([]stop, bool) {
	cur, tiered := &p.root, false
	for d := 0; d < len(chain); {
		cur = cur.kids.get(chain[d])
		if cur == nil {
			break
		}
		c := cur.common(chain[d:])
		way = append(way, stop{n: cur, start: d, shared: c})
		tiered = tiered || cur.shared != nil
		start, most := uint32(d), uint32(c)
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
	}
	return way, tiered
}

// cover brings cell.all up to date along the way: a block counts that is in any tier of the worker or in the shared
// one.
func cover(way []stop, cells []cell) {
	for _, s := range way {
		var shared bitmap
		base := 0
		if s.n.shared != nil {
			shared = s.n.shared.bits[GPU]
			base = min(int(s.n.shared.gpu), s.shared)
		}
		for i := range s.n.held {
			e := &s.n.held[i]
			if int(e.slot) >= len(cells) || int(cells[e.slot].all) != s.start {
				continue
			}
			far := int(e.both)
			if shared.has(far) {
				far = e.h.lead(far, e.h.bits[Local], shared)
			}
			cells[e.slot].all += uint32(min(far, s.shared))
		}
		if base == 0 {
			continue
		}
		for i := range cells { // who holds nothing here has the shared tier still
			if int(cells[i].all) == s.start {
				cells[i].all += uint32(base)
			}
		}
	}
}
