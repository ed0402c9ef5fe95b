package kvstore

import (
	"net/netip"

	"github.com/warmpath/warmpath/cache/kvstore/arena"
)

// holds counts the memory that clients keep from eviction: values that were promised to them, and values that they
// lease for seconds. Without a bound, one client that asks for all keys would make the store refuse every put of the
// others.
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
