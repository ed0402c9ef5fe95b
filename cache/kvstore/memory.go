package kvstore

import (
	"hash/maphash"
	"net/netip"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/arena"
	"github.com/warmpath/warmpath/cache/kvstore/catalog"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
	"github.com/warmpath/warmpath/cache/kvstore/evict"
	"github.com/warmpath/warmpath/cache/parts/pile"
)

// memory is the index of the arena. Store.mu guards it.
type memory struct {
	arena     *arena.Arena
	entries   map[string]*entry
	keys      *catalog.Catalog // of entries, in order
	policy    evict.Policy[*entry]
	ends      pile.Pile[*entry]   // the next one first
	pinned    map[*entry]struct{} // those with a pin, even one that is over
	wanted    map[string]*entry   // promised, and not there yet; only the pins of the entry are used
	kept      map[string]*entry   // promised, and on this machine's disk; only the pins of the entry are used
	lingerers []*entry            // passing values that are kept for a while, the oldest first; some are gone
	holds     holds               // of pins, and of leases that clients keep
	disk      rescuer
	seed      maphash.Seed
	losses    *Losses

	records, maxRecords int64 // bytes of keys and records, fillings too
	values              int64 // bytes of values that can be read
	reserved            int64 // bytes of the arena that values, fillings and replaced values with readers take
	lingering           int64 // bytes of lingerers
	fillings, leases    int
	announced           int64 // bytes of fillings that clients write: some may never come

	stuck time.Time // until then no value can be evicted, as a search has found

	evictions, expirations uint64
	broken                 uint64 // promises of values that were lost
}

// rescuer offers a victim to the disk; true = evict another value first.
type rescuer interface{ rescue(e *entry) bool }

// stuckFor spares a store full of pins the search through all of them at each put.
const stuckFor = 5 * time.Millisecond

// find returns the entry of the key if it can be read. An expired entry can be read as long as a promise lasts.
func (m *memory) find(key string, now time.Time) *entry {
	e := m.entries[key]
	if e != nil && e.expired(now) && !m.isPinned(e, now) {
		m.expire(e)
		return nil
	}
	return e
}

// reserve takes room for a value, and evicts others for it. nil = the values left are in use.
func (m *memory) reserve(key string, size int64, now time.Time) *entry {
	e := &entry{key: key, size: size}
	for {
		if m.records+e.record() <= m.maxRecords {
			if extents, ok := m.arena.Space.Alloc(size); ok {
				e.extents = extents
				break
			}
		}
		if !m.evict(now) {
			return nil
		}
	}
	m.records += e.record()
	m.reserved += arena.Cost(size)
	m.fillings++
	return e
}

// maxPassed is how many victims in a row may be passed over because the disk does not have them yet.
const maxPassed = 8

// evict evicts the policy's victim, together with its mate, and reports whether there was one.
func (m *memory) evict(now time.Time) bool {
	if now.Before(m.stuck) {
		return false
	}
	free := func(i *evict.Item[*entry]) bool { return i.Value.refs == 0 && !m.isKept(i.Value, now) }
	for passed := 0; ; passed++ {
		victim := m.policy.Victim(free)
		if victim == nil {
			m.stuck = now.Add(stuckFor)
			return false
		}
		e := victim.Value
		if passed < maxPassed && m.rescue(e, now) {
			m.policy.Add(victim)
			continue
		}
		m.evictions++
		if e.mate != nil {
			m.evictions++
			m.drop(e.mate)
		}
		m.drop(e)
		return true
	}
}

// isKept reports whether the value, or its other half, was promised.
func (m *memory) isKept(e *entry, now time.Time) bool {
	return m.isPinned(e, now) || e.mate != nil && m.isPinned(e.mate, now)
}

// rescue offers the disk what it does not have of the value and its mate; true = evict another value first.
func (m *memory) rescue(e *entry, now time.Time) bool {
	for _, half := range []*entry{e, e.mate} {
		if half != nil && half.put && !half.expired(now) && m.disk.rescue(half) {
			return true
		}
	}
	return false
}

// add makes a filled entry the value of its key.
func (m *memory) add(e *entry) {
	if old := m.entries[e.key]; old != nil {
		e.pins = append(e.pins, old.pins...) // the promise holds for the key
		m.detach(old)
		e.key = old.key // the index keeps its bytes
	}
	if w := m.wanted[e.key]; w != nil {
		e.pins = append(e.pins, w.pins...)
		delete(m.wanted, e.key)
	}
	m.filled(e)
	m.entries[e.key] = e
	m.keys.Put(catalog.Item{Key: e.key, Size: e.size, Expires: e.expires})
	m.values += e.size
	e.item = evict.Item[*entry]{Value: e, Size: arena.Cost(e.size) + e.record(), Hash: maphash.String(m.seed, e.key)}
	m.policy.Add(&e.item)
	if !e.expires.IsZero() {
		m.ends.Put(e)
	}
	m.carry(e)
	m.marry(e)
	m.stuck = time.Time{}
}

// abandon gives up a filling.
func (m *memory) abandon(e *entry) {
	m.filled(e)
	m.free(e)
}

// filled counts down a filling that has ended.
func (m *memory) filled(e *entry) {
	m.fillings--
	if e.announced {
		m.announced -= e.size
		e.announced = false
	}
}

// drop takes the entry out of the index. Its room is freed when it has no reader.
func (m *memory) drop(e *entry) {
	delete(m.entries, e.key)
	m.keys.Delete(e.key)
	m.detach(e)
	m.losses.Note(e.key)
}

// detach is drop for an entry whose key has another entry in the index by then, or none.
func (m *memory) detach(e *entry) {
	m.unpinAll(e)
	e.part()
	m.policy.Remove(&e.item)
	m.ends.Drop(e)
	m.values -= e.size
	e.gone = true
	if e.refs == 0 {
		m.free(e)
	}
}

func (m *memory) free(e *entry) {
	m.arena.Space.Release(e.extents)
	m.records -= e.record()
	m.reserved -= arena.Cost(e.size)
	m.stuck = time.Time{}
}

// dropAll drops all values, as their bytes are lost.
func (m *memory) dropAll() {
	for _, e := range m.entries {
		if len(e.pins) > 0 {
			m.broken++
		}
		m.drop(e)
	}
}

func (m *memory) expire(e *entry) {
	m.expirations++
	m.drop(e)
}

// lease counts a reader, and redeems the promise to its owner.
func (m *memory) lease(e *entry, owner netip.Addr) {
	m.hold(e)
	m.policy.Touch(&e.item)
	if len(e.pins) > 0 {
		m.redeem(e, owner)
	}
}

// hold counts a reader that is no client.
func (m *memory) hold(e *entry) {
	e.refs++
	m.leases++
}

func (m *memory) release(e *entry) {
	e.refs--
	m.leases--
	if e.refs > 0 {
		return
	}
	switch {
	case e.gone:
		m.free(e)
	case e.passing:
		m.pass(e, time.Now())
	}
	m.stuck = time.Time{}
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

// carry counts the promises that a value takes over from the value that it replaces, or that were made while it was
// read into memory. They hold also beyond the bound.
func (m *memory) carry(e *entry) {
	for _, p := range e.pins {
		m.holds.pinned(e, p.owner)
	}
	if len(e.pins) > 0 {
		m.pinned[e] = struct{}{}
	}
}

// unpinAll is for a value that leaves the index.
func (m *memory) unpinAll(e *entry) {
	for _, p := range e.pins {
		m.holds.unpinned(e, p.owner)
	}
	e.pins = nil
	delete(m.pinned, e)
}

// LMCache keeps a chunk of redis:// under two keys, ...metadata and ...kv_bytes, and looks up the first one alone. So
// the two are promised together, evicted together, and a look-up of one finds nothing if the other is gone. marry joins
// a value that has just come with its other half.
func (m *memory) marry(e *entry) {
	other, ok := chunks.Mate(e.key)
	if !ok {
		return
	}
	if mate := m.entries[other]; mate != nil {
		e.mate, mate.mate = mate, e
	}
}

// pass drops a value that is not needed in memory.
func (m *memory) pass(e *entry, now time.Time) {
	if e.passing && !e.gone && e.refs == 0 && !m.isPinned(e, now) && !now.Before(e.lingers) {
		m.drop(e)
	}
}

// linger keeps a passing value until then, as far as the share of the arena goes.
func (m *memory) linger(e *entry, until time.Time) {
	if e.gone || !e.passing || !e.lingers.IsZero() {
		return
	}
	e.lingers = until
	m.lingerers = append(m.lingerers, e)
	m.lingering += e.size
	for m.lingering > m.arena.Space.Size()/lingerShare {
		m.leaveOldest()
	}
}

// leaveOldest ends the stay of the oldest lingerer.
func (m *memory) leaveOldest() {
	e := m.lingerers[0]
	m.lingerers[0] = nil
	m.lingerers = m.lingerers[1:]
	m.lingering -= e.size
	e.lingers = time.Time{}
	m.pass(e, time.Now())
}

// sweep drops expired entries, and pins that are over.
func (m *memory) sweep(now time.Time) {
	for len(m.lingerers) > 0 && !now.Before(m.lingerers[0].lingers) {
		m.leaveOldest()
	}
	for e := range m.pinned {
		if !m.isPinned(e, now) {
			delete(m.pinned, e)
			m.stuck = time.Time{}
			m.pass(e, now)
		}
	}
	for _, promised := range []map[string]*entry{m.wanted, m.kept} {
		for key, w := range promised {
			if !w.pinned(now, uncounted) {
				delete(promised, key)
			}
		}
	}
	var promised []*entry
	for len(m.ends) > 0 && m.ends[0].expired(now) {
		e := m.ends[0]
		if m.isPinned(e, now) {
			m.ends.Drop(e)
			promised = append(promised, e)
			continue
		}
		m.expire(e)
	}
	for _, e := range promised {
		m.ends.Put(e)
	}
}

// takeOver moves the promises of a value on the disk to the value that is about to replace it.
func (m *memory) takeOver(e *entry) {
	if k := m.kept[e.key]; k != nil {
		e.pins = append(e.pins, k.pins...)
		delete(m.kept, e.key)
	}
}

// settle redeems a promise of a value that is not in memory, because the owner has read it, or breaks all its promises,
// because it is lost. It reports whether the disk need not keep the value any more.
func (m *memory) settle(key string, owner netip.Addr, found bool) (unkept bool) {
	broken, kept := false, m.kept[key] != nil
	for _, promised := range []map[string]*entry{m.wanted, m.kept} {
		w := promised[key]
		if w == nil {
			continue
		}
		if found {
			w.redeem(owner)
		} else {
			broken = broken || w.pinned(time.Now(), uncounted)
			w.pins = nil
		}
		if len(w.pins) == 0 {
			delete(promised, key)
		}
	}
	if broken {
		m.broken++
	}
	return kept && m.kept[key] == nil
}

// promised reports whether a client waits for a value that is not in memory.
func (m *memory) promised(key string) bool { return m.wanted[key] != nil || m.kept[key] != nil }
