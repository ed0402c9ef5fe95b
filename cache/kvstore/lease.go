package kvstore

import (
	"net/netip"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/arena"
)

// Lease is a value that is being read. Its bytes stay where they are until Release, whatever becomes of the key.
type Lease struct {
	store *Store
	entry *entry
	heap  []byte // the value itself, where the arena had no room for it; entry is nil then
}

// Size returns the bytes of the value.
func (l *Lease) Size() int64 {
	if l.entry == nil {
		return int64(len(l.heap))
	}
	return l.entry.size
}

// Pieces returns the value's bytes, in order, where they lie. Nobody may write to them.
func (l *Lease) Pieces() [][]byte {
	if l.entry == nil {
		return [][]byte{l.heap}
	}
	return l.store.memory.arena.Pieces(l.entry.extents)
}

// Extents returns where in the segment the bytes lie; none for a value that is not in it.
func (l *Lease) Extents() []arena.Extent {
	if l.entry == nil {
		return nil
	}
	return l.entry.extents
}

// Release ends the lease. A second call does nothing. Not to be called by two at once.
func (l *Lease) Release() {
	s, e := l.store, l.entry
	if s == nil {
		return
	}
	l.store = nil
	if e == nil {
		s.loads.heaps.Add(-1)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.release(e)
	s.checkIdle()
}

// Filling is room for a value that is being written.
type Filling struct {
	store *Store
	entry *entry
}

// Terms say under which condition a value is put, and how long it lasts. The zero value is always and for ever.
type Terms struct {
	Life time.Duration // 0 = no end
	When When
}

// When is the condition of a put.
type When int

// The conditions that Redis calls NX and XX.
const (
	Always When = iota
	IfAbsent
	IfPresent
)

// Pieces returns the room, in order.
func (f *Filling) Pieces() [][]byte { return f.store.memory.arena.Pieces(f.entry.extents) }

// Commit makes what was written the value of the key, or gives the room back if the terms do not allow that, and
// returns false then.
func (f *Filling) Commit(t Terms) bool {
	l := f.commit(t, netip.Addr{})
	if l == nil {
		return false
	}
	if b := l.store.config.Backing; b != nil {
		b.Put(l.entry.key, l.entry.expires, l)
		return true
	}
	l.Release()
	return true
}

// commit returns a lease on the value, which what is behind the memory needs.
func (f *Filling) commit(t Terms, owner netip.Addr) *Lease {
	s, e := f.store, f.entry
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	b := s.config.Backing
	if t.When != Always {
		present := s.memory.find(e.key, now) != nil || b != nil && b.Exists(e.key, time.Time{})
		if present != (t.When == IfPresent) {
			s.memory.abandon(e)
			s.checkIdle()
			return nil
		}
	}
	if t.Life > 0 {
		e.expires = now.Add(t.Life)
	}
	if b != nil {
		b.Delete(e.key) // or a read of the old value, under way now, would bring that back
	}
	s.memory.add(e)
	s.counts.puts++
	s.counts.written += uint64(e.size)
	s.memory.lease(e, owner)
	return &Lease{store: s, entry: e}
}

// land makes what was read from behind the value of the key, unless the key was put or deleted meanwhile.
func (f *Filling) land(expires time.Time, owner netip.Addr) *Lease {
	s, e := f.store, f.entry
	s.mu.Lock()
	defer s.mu.Unlock()
	if newer := s.memory.find(e.key, time.Now()); newer != nil || !s.config.Backing.Exists(e.key, time.Time{}) {
		s.memory.abandon(e)
		s.checkIdle()
		if newer == nil || s.closed {
			return nil
		}
		e = newer
	} else {
		e.expires = expires
		s.memory.add(e)
	}
	s.memory.lease(e, owner)
	return &Lease{store: s, entry: e}
}

// Abort gives the room back.
func (f *Filling) Abort() {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.store.memory.abandon(f.entry)
	f.store.checkIdle()
}
