package tier

import (
	"hash/maphash"
	"math"
	"strings"
	"sync"
)

const (
	// overhead is what an entry costs beside its key and value: the entry itself (176 bytes), two map slots' worth of a
	// half-full table (2 x 24), one place in the expiry heap (8), rounding of two allocations (2 x 16). TestMemoryIsBounded
	// weighs it against the heap.
	overhead = 272
	// maxSpaces bounds the namespaces: one for each kind of session and each strategy; a daemon has a handful.
	maxSpaces = 64
	// slots of change counters; two keys that share one cost each other an extra look at L2, nothing else.
	slots = 4096

	never = math.MaxInt64     // an expiry that does not come
	doubt = math.MinInt64 / 2 // a time of the last check so long ago that L2 is asked; no clock overflows with it
)

// debt is what L2 has not been told yet about an entry.
type debt uint8

const (
	paid      debt = iota
	oweTouch       // a longer life
	oweSwap        // a value, if L2 has the entry's base or nothing: else L2's value stands
	oweSet         // a value, whatever L2 has
	oweDrop        // that it is gone, if L2 has the entry's base: the entry is a tombstone
	oweDelete      // that it is gone, whatever L2 has: the same
)

// gone says that the entry of this debt is a tombstone.
func (d debt) gone() bool { return d >= oweDrop }

// entry is a value, or a tombstone that keeps L2's old value from coming back. Times are nanoseconds of the store's clock.
type entry struct {
	space      *space
	key        string
	value      []byte // never changed in place: readers hold it outside the lock
	expires    int64
	checked    int64 // when L2 last confirmed it, or this router wrote it
	dead       bool
	owes       debt
	base       []byte // for oweSwap and oweDrop: what L2 had when it was last heard; nil = nothing
	version    uint32 // moves with every change of value
	due        int64  // its place in the expiry heap was taken for this time, never later than expires
	at         int    // index in the expiry heap
	prev, next *entry
}

func (e *entry) cost() int { return len(e.key) + len(e.value) + overhead }

// space is a namespace: its entries, least recently used last.
type space struct {
	name    string
	entries map[string]*entry
	bytes   int
	root    entry // of the LRU ring
	evicted uint64
	expired uint64
}

// memory is L1. One lock: see doc.go for what it was measured against.
type memory struct {
	seed maphash.Seed
	max  int // bytes of all
	part int // bytes of one namespace

	mu      sync.Mutex // guards everything below
	bytes   int
	entries int
	spaces  map[string]*space
	due     expiry
	owing   map[*entry]struct{}
	changes [slots]uint32 // moves with every change of a key of that slot that was not read from L2
	evicted uint64
	expired uint64
	refused uint64 // values too large, namespaces too many
	lost    uint64 // evicted before L2 was told
}

func newMemory(max int) *memory {
	return &memory{seed: maphash.MakeSeed(), max: max, part: max / 2, spaces: map[string]*space{}, owing: map[*entry]struct{}{}}
}

// seen is what L1 knew of a key at one moment.
type seen struct {
	value   []byte
	expires int64
	checked int64
	live    bool // there is a value
	dead    bool // it was deleted here and L2 may not know
	owes    debt
	ticket  uint32 // of the change counter
}

func (m *memory) slot(ns, key string) *uint32 {
	return &m.changes[(maphash.String(m.seed, key)^uint64(len(ns)))%slots]
}

// look tells what is known of a key and makes it the most recently used. A live entry last checked before stale counts as
// checked now: of many that find it stale, one asks L2.
func (m *memory) look(ns, key string, now, stale int64) seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := seen{ticket: *m.slot(ns, key)}
	e := m.find(ns, key, now)
	if e == nil {
		return v
	}
	v.value, v.expires, v.checked, v.live, v.dead, v.owes = e.value, e.expires, e.checked, !e.dead, e.dead, e.owes
	e.touched()
	if e.checked < stale {
		e.checked = now
	}
	return v
}

// put stores a value, or a tombstone if owes is one's, and returns the ticket of this change. The value is kept as it is.
func (m *memory) put(ns, key string, value []byte, expires, now int64, owes debt) (ticket uint32, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.store(ns, key, value, expires, now, owes)
}

// settle takes over what L2 answered to a question asked when look gave the ticket. If the key was changed here meanwhile,
// nobody knows which came first: what stands is kept, but L2 is asked at the next look. changed: L2 did not have this value
// before the question. A nil value means that L2 has none.
func (m *memory) settle(ns, key string, ticket uint32, value []byte, expires, now int64, changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slot, e := m.slot(ns, key), m.find(ns, key, now)
	switch {
	case *slot != ticket:
		if e != nil {
			e.checked = doubt
		}
	case value == nil:
		if e != nil {
			m.drop(e)
		}
	case e != nil && e.owes != paid: // told to L2 later, and newer than what it answered
	default:
		m.store(ns, key, value, expires, now, paid)
		if !changed {
			*slot = ticket
		}
	}
}

// hold keeps what L2 answered for a key that was not known here before, and is not now. settle leaves it out when another key of
// the slot was changed meanwhile; but it must be here if L2 falls silent. L2 is asked at the next look.
func (m *memory) hold(ns, key string, value []byte, expires, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.find(ns, key, now) != nil {
		return
	}
	if _, ok := m.store(ns, key, value, expires, now, paid); ok {
		m.find(ns, key, now).checked = doubt
	}
}

// told marks as paid what stood at the ticket; a tombstone has then done its work.
func (m *memory) told(ns, key string, ticket uint32, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(ns, key, now)
	switch {
	case e == nil:
	case *m.slot(ns, key) != ticket:
		e.checked = doubt
	case e.dead:
		m.drop(e)
	default:
		m.owe(e, paid)
	}
}

// untold notes that L2 has to be told what stands there now.
func (m *memory) untold(ns, key string, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.find(ns, key, now); e != nil {
		m.oweAll(e)
	}
}

func (m *memory) oweAll(e *entry) {
	if e.dead {
		m.owe(e, oweDelete)
	} else {
		m.owe(e, oweSet)
	}
}

// rebase notes what L2 had, before a change that gives way to L2, and returns what the entry owes after it. What L2 had stays
// the same over several such changes; what follows a change that was to be told whatever L2 has is to be told so too.
func (e *entry) rebase(d debt) debt {
	if d != oweSwap && d != oweDrop {
		e.base = nil
		return d
	}
	switch e.owes {
	case oweSwap, oweDrop: // stays
	case oweSet, oweDelete:
		e.base = nil
		if d == oweDrop {
			return oweDelete
		}
		return oweSet
	default: // nil if the entry is new
		e.base = e.value
	}
	return d
}

// touch gives a live entry a new expiry.
func (m *memory) touch(ns, key string, expires, now int64, owes debt) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(ns, key, now)
	if e == nil || e.dead {
		return false
	}
	*m.slot(ns, key)++
	m.expire(e, expires)
	m.owe(e, max(e.owes, owes))
	return true
}

// swap stores what next makes of the live value (nil: there is none), in one step; it stores nothing if next says so.
func (m *memory) swap(ns, key string, expires, now int64, owes debt, next func(old []byte) (value []byte, keepExpiry, ok bool)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(ns, key, now)
	var old []byte
	if e != nil && !e.dead {
		old = e.value
	}
	value, keep, ok := next(old)
	if !ok {
		return false
	}
	if keep && old != nil {
		expires = e.expires
	}
	_, ok = m.store(ns, key, value, expires, now, owes)
	return ok
}

// find returns the entry of a key unless it is expired. The lock is held.
func (m *memory) find(ns, key string, now int64) *entry {
	s := m.spaces[ns]
	if s == nil {
		return nil
	}
	e := s.entries[key]
	if e != nil && e.expires <= now {
		m.expireNow(e)
		return nil
	}
	return e
}

func (m *memory) expireNow(e *entry) {
	m.expired++
	e.space.expired++
	m.drop(e)
}

// remove drops a key's entry.
func (m *memory) remove(ns, key string, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*m.slot(ns, key)++
	if e := m.find(ns, key, now); e != nil {
		m.drop(e)
	}
}

// fits says whether a value may be stored at all, and counts it if not.
func (m *memory) fits(key string, value []byte) bool {
	if len(key)+len(value)+overhead <= m.part {
		return true
	}
	m.mu.Lock()
	m.refused++
	m.mu.Unlock()
	return false
}

// store puts an entry in front and makes room for it. The lock is held.
func (m *memory) store(ns, key string, value []byte, expires, now int64, owes debt) (ticket uint32, ok bool) {
	slot := m.slot(ns, key)
	*slot++
	e := m.find(ns, key, now)
	if len(key)+len(value)+overhead > m.part { // from a router with a larger memory: L2 has it, L1 cannot
		if e != nil {
			m.drop(e)
		}
		return *slot, false
	}
	if e == nil {
		s := m.space(ns)
		if s == nil {
			m.refused++
			return *slot, false
		}
		e = &entry{space: s, key: strings.Clone(key), expires: expires, due: expires}
		s.entries[e.key] = e
		m.entries++
		m.charge(e, e.cost())
		e.link()
		m.due.push(e)
	}
	owes = e.rebase(owes)
	m.charge(e, len(value)-len(e.value))
	e.value, e.checked, e.dead = value, now, owes.gone()
	e.version++
	m.expire(e, expires)
	m.owe(e, owes)
	e.touched()
	m.makeRoom(e)
	return *slot, true
}
