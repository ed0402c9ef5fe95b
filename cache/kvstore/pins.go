package kvstore

import (
	"net/netip"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/arena"
)

// holds counts the memory that clients keep from eviction: values that were promised to them, and values that they
// lease for seconds. Without a bound, one client that asks for all keys would have every put of the others refused.
type holds struct {
	most  int64                // bytes
	bytes int64                // of the values held
	of    map[netip.Addr]int64 // bytes that were promised to each client
}

const (
	heldShare  = 2 // of the arena may be held
	ownerShare = 2 // of that may be held by one client
)

func newHolds(arena int64) holds {
	return holds{most: arena / heldShare, of: map[netip.Addr]int64{}}
}

// fits reports whether the value may be held. A single value always may.
func (h *holds) fits(e *entry) bool {
	return e.holders > 0 || h.bytes == 0 || h.bytes+arena.Cost(e.size) <= h.most
}

// fitsOwner is fits for a promise to one client.
func (h *holds) fitsOwner(e *entry, owner netip.Addr) bool {
	own := h.of[owner]
	return h.fits(e) && (own == 0 || own+arena.Cost(e.size) <= h.most/ownerShare)
}

func (h *holds) add(e *entry) {
	if e.holders == 0 {
		h.bytes += arena.Cost(e.size)
	}
	e.holders++
}

func (h *holds) remove(e *entry) {
	e.holders--
	if e.holders == 0 {
		h.bytes -= arena.Cost(e.size)
	}
}

// pinned and unpinned count a promise to a client.
func (h *holds) pinned(e *entry, owner netip.Addr) {
	h.add(e)
	h.of[owner] += arena.Cost(e.size)
}

func (h *holds) unpinned(e *entry, owner netip.Addr) {
	h.remove(e)
	h.of[owner] -= arena.Cost(e.size)
	if h.of[owner] == 0 {
		delete(h.of, owner)
	}
}

// pin promises a value to a client. It returns false if the clients, or this one, hold as much as they may.
func (m *memory) pin(e *entry, owner netip.Addr, until time.Time) bool {
	if !e.isPinnedBy(owner) {
		if !m.holds.fitsOwner(e, owner) {
			return false
		}
		m.pinned[e] = struct{}{}
	}
	if by, fresh := e.pin(owner, until); fresh {
		m.holds.pinned(e, by)
	}
	return true
}

// redeem ends one promise to a client that has read the value.
func (m *memory) redeem(e *entry, owner netip.Addr) {
	if e.redeem(owner) {
		m.holds.unpinned(e, owner)
	}
	if len(e.pins) == 0 {
		delete(m.pinned, e)
	}
}

// isPinned reports whether a promise of the value is in force. It drops those that are over.
func (m *memory) isPinned(e *entry, now time.Time) bool {
	return e.pinned(now, func(over netip.Addr) { m.holds.unpinned(e, over) })
}

// carry counts the promises that a value brings with it from the one before, or from its way into memory. They hold
// also beyond the bound.
func (m *memory) carry(e *entry) {
	for _, p := range e.pins {
		m.holds.pinned(e, p.owner)
	}
	if len(e.pins) > 0 {
		m.pinned[e] = struct{}{}
	}
}

// unpinAll drops the promises of a value that leaves the index.
func (m *memory) unpinAll(e *entry) {
	for _, p := range e.pins {
		m.holds.unpinned(e, p.owner)
	}
	e.pins = nil
	delete(m.pinned, e)
}
