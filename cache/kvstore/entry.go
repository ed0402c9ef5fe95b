package kvstore

import (
	"net/netip"
	"slices"
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
	place   int       // in memory.ends; 0 = not there
	refs    int       // leases
	gone    bool      // it is in no map: its room is freed with the last lease
	passing bool      // another tier has it: it is dropped when no lease and no promise is on it
	put     bool      // by a client: a tier that refused it gets it again before it is evicted
	pins    []pin
	holders int       // promises and leases of clients, as holds counts them
	mate    *entry    // the other half of a value that LMCache keeps under two keys, if it is in memory; see memory.marry
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

// record returns the memory of the entry outside the arena.
func (e *entry) record() int64 {
	return recordBytes + int64(len(e.key)) + 16*int64(len(e.extents))
}

func (e *entry) expired(now time.Time) bool { return !e.expires.IsZero() && !now.Before(e.expires) }

// pinned reports whether a promise is in force. It drops those that are over, and calls ended with their owners.
func (e *entry) pinned(now time.Time, ended func(owner netip.Addr)) bool {
	kept := e.pins[:0]
	for _, p := range e.pins {
		if now.Before(p.until) {
			kept = append(kept, p)
		} else {
			ended(p.owner)
		}
	}
	clear(e.pins[len(kept):])
	e.pins = kept
	return len(kept) > 0
}

// uncounted is for the promises of a value that is not in memory yet.
func uncounted(netip.Addr) {}

// maxPins bounds the pins of a value, one for each client. Further clients share one, which only time ends.
const maxPins = 64

// sharedBy returns under whose name a promise to the client stands.
func (e *entry) sharedBy(owner netip.Addr) netip.Addr {
	if len(e.pins) >= maxPins {
		return netip.Addr{}
	}
	return owner
}

func (e *entry) isPinnedBy(owner netip.Addr) bool { return e.pinOf(e.sharedBy(owner)) >= 0 }

func (e *entry) pinOf(owner netip.Addr) int {
	return slices.IndexFunc(e.pins, func(p pin) bool { return p.owner == owner })
}

// pin adds a promise. It returns under whose name it stands, and whether that is the first one of that name.
func (e *entry) pin(owner netip.Addr, until time.Time) (by netip.Addr, fresh bool) {
	by = e.sharedBy(owner)
	if i := e.pinOf(by); i >= 0 {
		e.pins[i].count++
		e.pins[i].until = until
		return by, false
	}
	e.pins = append(e.pins, pin{owner: by, count: 1, until: until})
	return by, true
}

// redeem ends one promise to the client, which has read the value. It reports whether that was the client's last one.
func (e *entry) redeem(owner netip.Addr) (last bool) {
	i := e.pinOf(owner)
	if i < 0 || !owner.IsValid() {
		return false
	}
	e.pins[i].count--
	if e.pins[i].count > 0 {
		return false
	}
	e.pins[i] = e.pins[len(e.pins)-1]
	e.pins = e.pins[:len(e.pins)-1]
	return true
}

// part parts a value that leaves the index from its other half.
func (e *entry) part() {
	if e.mate != nil {
		e.mate.mate = nil
		e.mate = nil
	}
}

// Before implements pile.Ranked: it ends sooner.
func (e *entry) Before(other *entry) bool { return e.expires.Before(other.expires) }

// Place implements pile.Ranked.
func (e *entry) Place() *int { return &e.place }
