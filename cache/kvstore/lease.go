package kvstore

import (
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
		s.freeHeap(int64(len(l.heap)))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.release(e)
	s.checkIdle()
}

// Leave is Release for a Backing that has the value in its keeping, where memory need not keep it too.
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

// head returns up to the first 28 bytes of what was written.
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

// Commit makes what was written the value of the key, or gives the room back if the terms do not allow that, and
// returns false then. It waits for a tier that writes through.
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

// Abort gives the room back.
func (f *Filling) Abort() {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.store.memory.abandon(f.entry)
	f.store.checkIdle()
}
