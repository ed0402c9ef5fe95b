package kvstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/arena"
	"github.com/warmpath/warmpath/cache/kvstore/evict"
)

// Store keeps values in an arena. Its methods may be called by many at once, until Close.
type Store struct {
	config Config
	loads  loads

	mu         sync.Mutex // guards all below
	memory     memory
	counts     counts
	quietUntil time.Time
	closed     bool
	idle       chan struct{} // closed by the last lease or filling after Close began
}

// Open takes the memory. Close gives it back.
func Open(c Config) (*Store, error) {
	c = c.withDefaults()
	if c.MaxBytes < MinBytes {
		return nil, fmt.Errorf("kvstore: %d bytes are too few for large values; give at least %d", c.MaxBytes, MinBytes)
	}
	policy, err := evict.New[*entry](c.Policy)
	if err != nil {
		return nil, fmt.Errorf("kvstore: %w", err)
	}
	records := c.MaxBytes / recordShare
	a, err := arena.Open(arena.Config{Bytes: c.MaxBytes - records, Segment: c.Segment, Mode: c.Mode, Log: c.Log})
	if err != nil {
		return nil, fmt.Errorf("kvstore: %w", err)
	}
	c.MaxValue = min(c.MaxValue, a.Space.Size())
	s := &Store{config: c, idle: make(chan struct{}), memory: memory{arena: a, policy: policy,
		entries: map[string]*entry{}, pinned: map[*entry]struct{}{}, seed: maphash.MakeSeed(), maxRecords: records}}
	if a.Attached {
		s.quietUntil = time.Now().Add(c.Quiet)
		c.Log.Warn("workers have the shared memory of the last process mapped: no value is taken before its leases are "+
			"over", "segment", c.Segment, "wait", c.Quiet)
	}
	return s, nil
}

// Run does what time asks for until ctx ends: values and pins expire, the segment's name comes back. It also takes the
// memory from the system, so that puts need not wait for that.
func (s *Store) Run(ctx context.Context) {
	var populating sync.WaitGroup
	defer populating.Wait()
	populating.Go(func() { s.memory.arena.Populate(ctx) })
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.mu.Lock()
			closed := s.closed
			if !closed {
				s.memory.sweep(now)
			}
			s.mu.Unlock()
			if !closed {
				s.memory.arena.Tend()
			}
		}
	}
}

// tendEvery bounds for how long the name of a segment is missing, after a worker has deleted it.
const tendEvery = 250 * time.Millisecond

// Close refuses everything from now on, waits up to wait for readers, and gives the memory back. Run must have
// returned. If somebody still reads then, the memory stays with the process and Close says so.
func (s *Store) Close(wait time.Duration) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.checkIdle()
	}
	s.mu.Unlock()
	select {
	case <-s.idle:
	case <-time.After(wait):
		return fmt.Errorf("kvstore: values are still read %s after the end", wait)
	}
	kept, err := s.memory.arena.Close()
	if kept {
		s.config.Log.Info("workers have the shared memory mapped: it stays for the next start", "segment", s.config.Segment)
	}
	if err != nil {
		return fmt.Errorf("kvstore: %w", err)
	}
	return nil
}

// checkIdle tells Close that nobody uses the arena. The caller holds mu.
func (s *Store) checkIdle() {
	if s.closed && s.memory.leases == 0 && s.memory.fillings == 0 {
		close(s.idle)
	}
}

// Get leases the value of a key, from memory or else from what is behind it; nil = there is none. A client's address
// redeems one promise of Exists; the zero Addr redeems none. ctx bounds the wait for what is behind.
func (s *Store) Get(ctx context.Context, key string, owner netip.Addr) *Lease {
	if l := s.lease(key, owner); l != nil {
		s.count(func(n *counts) { n.hits++; n.read += uint64(l.Size()) })
		return l
	}
	var l *Lease
	if b := s.config.Backing; b != nil && b.Exists(key, time.Time{}) {
		l = s.load(ctx, key, owner)
	}
	if l == nil {
		s.count(func(n *counts) { n.misses++ })
		return nil
	}
	s.count(func(n *counts) { n.loaded++; n.read += uint64(l.Size()) })
	return l
}

// lease leases what is in memory.
func (s *Store) lease(key string, owner netip.Addr) *Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	e := s.memory.find(key, time.Now())
	if e == nil {
		return nil
	}
	s.memory.lease(e, owner)
	return &Lease{store: s, entry: e}
}

// Exists reports whether the key has a value, without a wait. With a promise above zero it will be there for so long,
// or until the owner has read it, whatever else is put; a deletion alone ends that. Each promise is redeemed by one
// Get.
func (s *Store) Exists(key string, owner netip.Addr, promise time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.closed {
		return false
	}
	if e := s.memory.find(key, now); e != nil {
		if promise > 0 {
			s.memory.pin(e, owner, now.Add(promise))
		}
		return true
	}
	if s.config.Backing == nil {
		return false
	}
	var keep time.Time
	if promise > 0 {
		keep = now.Add(promise)
	}
	return s.config.Backing.Exists(key, keep)
}

// Info returns the length and the end of a value in memory; a zero end means none.
func (s *Store) Info(key string) (size int64, expires time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.memory.find(key, time.Now()); e != nil && !s.closed {
		return e.size, e.expires, true
	}
	return 0, time.Time{}, false
}

// Delete deletes a value and reports whether it was there. Who reads it reads on.
func (s *Store) Delete(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	e := s.memory.find(key, time.Now())
	if e != nil {
		s.memory.drop(e)
	}
	behind := s.config.Backing != nil && s.config.Backing.Delete(key)
	return e != nil || behind
}

// Reserve takes room for a value of a known size, which the caller fills and then commits or aborts. Until then the key
// has the value that it had. Its error is one of Err....
func (s *Store) Reserve(key string, size int64) (*Filling, error) {
	f, err := s.reserve(key, size)
	if err != nil {
		s.count(func(n *counts) { n.refused[err]++ })
	}
	return f, err
}

func (s *Store) reserve(key string, size int64) (*Filling, error) {
	switch {
	case key == "" || len(key) > MaxKey:
		return nil, ErrKey
	case size < 0 || size > s.config.MaxValue:
		return nil, ErrTooLarge
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case s.closed:
		return nil, ErrClosed
	case now.Before(s.quietUntil):
		return nil, ErrQuiet
	}
	e := s.memory.reserve(key, size, now)
	if e == nil {
		return nil, ErrFull
	}
	return &Filling{store: s, entry: e}, nil
}

// MaxBytes returns what the store may take of memory in all.
func (s *Store) MaxBytes() int64 { return s.config.MaxBytes }

// Policy returns the name of what chooses victims.
func (s *Store) Policy() string { return s.config.Policy }

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
	s, e := f.store, f.entry
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.checkIdle()
	now := time.Now()
	b := s.config.Backing
	if t.When != Always {
		present := s.memory.find(e.key, now) != nil || b != nil && b.Exists(e.key, time.Time{})
		if present != (t.When == IfPresent) {
			s.memory.abandon(e)
			return false
		}
	}
	if t.Life > 0 {
		e.expires = now.Add(t.Life)
	}
	s.memory.add(e)
	s.counts.puts++
	s.counts.written += uint64(e.size)
	if b == nil {
		return true
	}
	b.Delete(e.key) // or a read of the old value, under way now, would bring that back
	s.memory.lease(e, netip.Addr{})
	if !b.Put(e.key, e.expires, &Lease{store: s, entry: e}) {
		s.memory.release(e)
	}
	return true
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
