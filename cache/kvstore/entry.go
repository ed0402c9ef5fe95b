package kvstore

import (
	"net/netip"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/arena"
	"github.com/warmpath/warmpath/cache/kvstore/evict"
)

// entry is a value in memory, or room for one. Store.mu guards it. The bytes are written before the entry is committed,
// and never after.
type entry struct {
	item    evict.Item[*entry]
	key     string
	size    int64
	extents []arena.Extent
	expires time.Time // zero = never
	place   int       // in the store's heap of expiries; -1 = not there
	refs    int       // leases
	gone    bool      // it is in no map: its room is freed with the last lease
	passing bool      // another tier has it: it is dropped when no lease and no promise is on it
	put     bool      // by a client: a tier that refused it gets it again before it is evicted
	pins    []pin
	lingers time.Time // a passing value is kept until then, unless room is needed

	announced bool // a client is writing it: its size is part of memory.announced
}

// pin is a promise to one client that the value will be there.
type pin struct {
	owner netip.Addr
	count int // promises that no read has redeemed
	until time.Time
	firm  bool // the client waits for ever: only Store.Promise reads this
}

// record returns what the entry takes beside its room in the arena.
func (e *entry) record() int64 {
	return recordBytes + int64(len(e.key)) + 16*int64(len(e.extents))
}

func (e *entry) expired(now time.Time) bool { return !e.expires.IsZero() && !now.Before(e.expires) }

// pinned reports whether a promise is in force. It drops those that are over.
func (e *entry) pinned(now time.Time) bool {
	kept := e.pins[:0]
	for _, p := range e.pins {
		if now.Before(p.until) {
			kept = append(kept, p)
		}
	}
	clear(e.pins[len(kept):])
	e.pins = kept
	return len(kept) > 0
}

// maxPins bounds the pins of a value, one for each client. Further clients share one, which only time ends.
const maxPins = 64

func (e *entry) pin(owner netip.Addr, until time.Time) {
	if len(e.pins) >= maxPins {
		owner = netip.Addr{}
	}
	for i := range e.pins {
		if p := &e.pins[i]; p.owner == owner {
			p.count++
			p.until = until
			return
		}
	}
	e.pins = append(e.pins, pin{owner: owner, count: 1, until: until})
}

// redeem ends one promise to the client, which has read the value.
func (e *entry) redeem(owner netip.Addr) {
	for i := range e.pins {
		if p := &e.pins[i]; p.owner == owner && owner.IsValid() {
			p.count--
			if p.count <= 0 {
				e.pins[i] = e.pins[len(e.pins)-1]
				e.pins = e.pins[:len(e.pins)-1]
			}
			return
		}
	}
}

// expiries is a heap of the entries that have an end, the next one first.
type expiries []*entry

func (h expiries) Len() int           { return len(h) }
func (h expiries) Less(i, j int) bool { return h[i].expires.Before(h[j].expires) }

func (h expiries) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place = i
	h[j].place = j
}

// Push adds an entry at the end, for package heap.
func (h *expiries) Push(x any) {
	e := x.(*entry)
	e.place = len(*h)
	*h = append(*h, e)
}

// Pop takes the last entry, for package heap.
func (h *expiries) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.place = -1
	return e
}
