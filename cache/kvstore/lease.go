package kvstore

import (
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/arena"
)

// Lease is a value that is being read. Its bytes stay in place until Release, even if the key changes.
type Lease struct {
	store *Store
	entry *entry
	heap  []byte // the value itself, where the arena had no room for it; entry is nil then
	first bool   // it fetched the value from a tier behind
	held  bool   // counted by Hold
}

// Hold counts a lease that its client may keep for seconds. false = promises and such leases hold half of the memory
// already: the caller is to release this one.
func (l *Lease) Hold() bool {
	s, e := l.store, l.entry
	if e == nil {
		return true // outside the arena, with a bound of its own
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.memory.holds.fits(e) {
		return false
	}
	s.memory.holds.add(e)
	l.held = true
	return true
}

// Size returns the bytes of the value.
func (l *Lease) Size() int64 {
	if l.entry == nil {
		return int64(len(l.heap))
	}
	return l.entry.size
}

// Pieces returns the value's bytes in place, in order. They must not be changed.
func (l *Lease) Pieces() [][]byte {
	if l.entry == nil {
		return [][]byte{l.heap}
	}
	return l.store.memory.arena.Pieces(l.entry.extents)
}

// Extents returns the places of the bytes in the segment; none for a value outside it.
func (l *Lease) Extents() []arena.Extent {
	if l.entry == nil {
		return nil
	}
	return l.entry.extents
}

// Release ends the lease. A second call does nothing. Two goroutines must not call it at once.
func (l *Lease) Release() {
	s, e := l.store, l.entry
	if s == nil {
		return
	}
	l.store = nil
	if e == nil {
		s.freeHeap(int64(len(l.heap)))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.held {
		s.memory.holds.remove(e)
	}
	s.memory.release(e)
	s.checkIdle()
}

// Linger is Release by a reader who is likely to come back at once. If this lease fetched a value that memory need not
// keep, the value stays for lingerTime, unless room is needed.
func (l *Lease) Linger() {
	if s, e := l.store, l.entry; s != nil && e != nil && l.first {
		s.mu.Lock()
		s.memory.linger(e, time.Now().Add(lingerTime))
		s.mu.Unlock()
	}
	l.Release()
}

// Leave is Release by a Backing that has stored the value, so that memory need not keep it.
func (l *Lease) Leave() {
	if s, e := l.store, l.entry; s != nil && e != nil {
		s.mu.Lock()
		e.passing = true
		s.mu.Unlock()
	}
	l.Release()
}

// drop is Release where the caller holds the store's lock.
func (l *Lease) drop() {
	l.store.memory.release(l.entry)
	l.store = nil
}

// Filling is room for a value that is being written.
type Filling struct {
	store *Store
	entry *entry
	reach Reach
}

// Terms set the condition of a put, and how long the value lasts. The zero value has no condition and no end.
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

// head returns the first bytes of the value, up to 28.
func (f *Filling) head() []byte {
	var all []byte
	for _, piece := range f.Pieces() {
		if all == nil && len(piece) >= headBytes {
			return piece[:headBytes]
		}
		all = append(all, piece[:min(len(piece), headBytes-len(all))]...)
		if len(all) == headBytes {
			break
		}
	}
	return all
}

// headBytes is the length of LMCache's metadata.
const headBytes = 28

// Commit makes the written bytes the value of the key. If the terms do not allow that, it frees the room and returns
// false. It waits for a tier that writes through.
func (f *Filling) Commit(t Terms) bool {
	if note := f.store.config.Noted; note != nil {
		note(f.entry.key, f.entry.size, f.head())
	}
	waits, ok := f.store.commit(f.entry, t, f.reach)
	for _, w := range waits {
		<-w
	}
	return ok
}

// Abort frees the room.
func (f *Filling) Abort() {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.store.memory.abandon(f.entry)
	f.store.checkIdle()
}
