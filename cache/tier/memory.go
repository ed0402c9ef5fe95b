package tier

import (
	"bytes"
	"hash/maphash"
	"sync"
)

// slots of change counters; two keys that share one cost each other an extra look at Redis, nothing else.
const slots = 4096

// memory is L1. It has one lock: why.md has what that was measured against.
type memory struct {
	seed maphash.Seed
	mu   sync.Mutex // guards everything below
	lru
	changes [slots]uint32 // moves with every change of a key of that slot that was not read from Redis
}

func newMemory(conf Config) *memory {
	m := &memory{seed: maphash.MakeSeed(), lru: newLRU(conf.MaxBytes)}
	m.of = conf.Owners
	m.backed = conf.Redis != ""
	return m
}

// seen is what L1 knew of a value at one moment.
type seen struct {
	value   []byte
	expires int64
	checked int64
	live    bool // there is a value
	owes    debt
	ticket  uint32 // of the change counter
}

// write is a change of a value, or a tombstone if owes is one's.
type write struct {
	value      []byte // is kept as it is
	expires    int64
	keepExpiry bool // of a value that lives
	owes       debt
}

func (m *memory) slot(k id) *uint32 {
	return &m.changes[(maphash.String(m.seed, k.key)^uint64(len(k.ns)))%slots]
}

// read returns what is known of a value and makes it the most recently used. A live entry last checked before stale
// counts as checked now: of many that find it stale, one asks Redis.
func (m *memory) read(k id, now, stale int64) seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := seen{ticket: *m.slot(k)}
	e := m.find(k, now)
	if e == nil {
		return v
	}
	v.value = e.value
	v.expires = e.expires
	v.checked = e.checked
	v.live = e.live()
	v.owes = e.owes
	e.moveToFront()
	if e.checked < stale {
		e.checked = now
	}
	return v
}

// put stores a value, or a tombstone, and returns the ticket of this change.
func (m *memory) put(k id, w write, now int64) (ticket uint32, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.store(k, w, now)
}

// update replaces the live value by what next returns, in one step. next gets nil if there is no value. Nothing is
// stored if next returns false.
func (m *memory) update(k id, w write, now int64, next func(old []byte) (value []byte, ok bool)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(k, now)
	var old []byte
	if e != nil && e.live() {
		old = e.value
	}
	value, ok := next(old)
	if !ok {
		return false
	}
	w.value = value
	if w.keepExpiry && old != nil {
		w.expires = e.expires
	}
	_, ok = m.store(k, w, now)
	return ok
}

// touch gives a live value a new expiry.
func (m *memory) touch(k id, expires, now int64, owes debt) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(k, now)
	if e == nil || !e.live() {
		return false
	}
	*m.slot(k)++
	m.setExpiry(e, expires)
	m.setDebt(e, max(e.owes, owes))
	return true
}

// delete removes a value and leaves no tombstone.
func (m *memory) delete(k id, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*m.slot(k)++
	if e := m.find(k, now); e != nil {
		m.remove(e)
	}
}

// deleteOnly puts a tombstone in the place of a value that Redis is taken to have. Another value stays.
func (m *memory) deleteOnly(k id, value []byte, expires, now int64) (ticket uint32, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(k, now)
	if e != nil && e.live() && !bytes.Equal(e.value, value) { // changed since the caller read it
		return 0, false
	}
	ticket, ok = m.store(k, write{expires: expires, owes: oweDrop}, now)
	if !ok {
		return ticket, false
	}
	e = m.find(k, now)
	if e.base == nil { // Redis had nothing, unless it has stored the value and its answer was lost
		e.base = value
	}
	return ticket, true
}

// owes reports whether a change of a value has not been sent to Redis yet.
func (m *memory) owes(k id, now int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(k, now)
	return e != nil && e.owes != paid
}

// fits reports whether a value may be stored at all, and counts it if not.
func (m *memory) fits(key string, value []byte) bool {
	if !m.tooLarge(key, value) {
		return true
	}
	m.mu.Lock()
	m.refused++
	m.mu.Unlock()
	return false
}

// admits reports whether a new value may be stored as far as its owner's share goes.
func (m *memory) admits(ns, key string, value []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shares.admits(ns, value, len(key)+len(value)+overhead)
}

// setOwners sets how many owners are expected.
func (m *memory) setOwners(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setExpect(n)
}

// store puts an entry in front and makes room for it. The lock is held.
func (m *memory) store(k id, w write, now int64) (ticket uint32, ok bool) {
	slot := m.slot(k)
	*slot++
	e := m.find(k, now)
	var stood *shelf
	if e != nil {
		stood = e.shelf
	}
	if m.tooLarge(k.key, w.value) { // from a router with a larger memory: Redis has it, L1 cannot
		if e != nil {
			m.remove(e)
		}
		return *slot, false
	}
	if e == nil {
		e = m.add(k, w.expires)
		if e == nil {
			return *slot, false
		}
	}
	owes := e.debtAfter(w.owes)
	m.setValue(e, w.value)
	e.checked = now
	e.version++
	m.setExpiry(e, w.expires)
	m.setDebt(e, owes)
	e.moveToFront()
	if !m.makeRoom(e) && e.shelf != stood { // one that stood there already takes no more room than before
		m.refused++
		m.remove(e)
		return *slot, false
	}
	return *slot, true
}
