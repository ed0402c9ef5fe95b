package kvstore

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// loads are the reads of what is behind. Many who ask for one key wait for one read.
type loads struct {
	mu      sync.Mutex // guards flights
	flights map[flight]*read

	heaps atomic.Int64 // values on their way to a reader that the arena had no room for
}

// flight is a read under way. A read that stays here never waits for one that goes further: two daemons that each take
// the other for the owner of a key would wait for each other.
type flight struct {
	key   string
	reach Reach
}

// read is what those wait for who want the same.
type read struct {
	done  chan struct{}
	found bool // set before done is closed
}

const (
	loadTime = 10 * time.Second // of one read: 128 MiB at 13 MB/s
	maxHeaps = 4                // values of up to 128 MiB each; after that a miss
)

// load gets the key's value from behind into memory, or waits for who does. from is the Backing that had it, by its
// place; -1 = it was in memory by then.
func (s *Store) load(ctx context.Context, f flight, owner netip.Addr) (l *Lease, from int) {
	for {
		if l := s.lease(f.key, owner); l != nil {
			return l, -1 // another read has just ended
		}
		r, lead := s.loads.join(f)
		if lead {
			return s.lead(ctx, f, r, owner)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, -1
		}
		if !r.found {
			return nil, -1
		}
		// What memory need not keep may have left it again, with the reader who got it: read it once more.
	}
}

// lead is the one read of a key.
func (s *Store) lead(ctx context.Context, f flight, r *read, owner netip.Addr) (l *Lease, from int) {
	defer func() { s.loads.leave(f, r, l != nil) }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTime) // others wait for it too
	defer cancel()
	for i, b := range s.behind.within(f.reach) {
		if l := s.fetch(ctx, f.key, b, owner); l != nil {
			return l, i
		}
	}
	return nil, -1
}

// join returns the read under way, or a new one that the caller has to do.
func (l *loads) join(f flight) (r *read, lead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.flights[f]; r != nil {
		return r, false
	}
	if l.flights == nil {
		l.flights = map[flight]*read{}
	}
	r = &read{done: make(chan struct{})}
	l.flights[f] = r
	return r, true
}

func (l *loads) leave(f flight, r *read, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.found = found
	close(r.done)
	delete(l.flights, f)
}

// fetch reads the value from behind into its place in the arena. If that is full of values in use, the reader gets it
// in memory of its own, as it may have been promised.
func (s *Store) fetch(ctx context.Context, key string, b Backing, owner netip.Addr) *Lease {
	var filling *Filling
	var onHeap []byte
	place := func(a Arrival) ([][]byte, error) {
		if filling != nil {
			filling.Abort()
			filling = nil
		}
		if onHeap != nil {
			s.freeHeap()
			onHeap = nil
		}
		f, err := s.reserve(key, a.Size)
		if err == nil {
			filling = f
			f.entry.expires = a.Expires
			f.entry.passing = a.Passing
			return f.Pieces(), nil
		}
		if !errors.Is(err, ErrFull) && !errors.Is(err, ErrQuiet) {
			return nil, err
		}
		if s.loads.heaps.Add(1) > maxHeaps {
			s.freeHeap()
			return nil, err
		}
		onHeap = make([]byte, a.Size)
		return [][]byte{onHeap}, nil
	}
	found, err := b.Get(ctx, key, place)
	good := found && err == nil
	if err != nil {
		s.count(func(n *counts) { n.loadErrors++ })
	}
	switch {
	case filling != nil && good:
		return filling.land(b, owner)
	case filling != nil:
		filling.Abort()
	case onHeap != nil && good:
		return &Lease{store: s, heap: onHeap}
	case onHeap != nil:
		s.freeHeap()
	}
	return nil
}

// land makes what was read from behind the value of the key, unless the key was put or deleted meanwhile.
func (f *Filling) land(b Backing, owner netip.Addr) *Lease {
	s, e := f.store, f.entry
	s.mu.Lock()
	defer s.mu.Unlock()
	if newer := s.memory.find(e.key, time.Now()); newer != nil || !b.Exists(e.key, time.Time{}) {
		s.memory.abandon(e)
		s.checkIdle()
		if newer == nil || s.closed {
			return nil
		}
		e = newer
	} else {
		s.memory.add(e)
	}
	s.memory.lease(e, owner)
	return &Lease{store: s, entry: e}
}

// What a tier behind has is promised by a pin that waits for the value. The value comes as soon as a fetcher is free,
// or with the GET, if that is first; memory.add gives it the pin. So it is there when the client asks, whatever the
// tier evicts meanwhile.

const (
	maxWanted = 4096 // promises of values that are not in memory yet: 64 GiB at 16 MiB each. No more are made
	fetchers  = 4    // reads of promised values at a time
)

// want promises a value that is not in memory and has it fetched; false = there are too many. The caller holds mu.
func (s *Store) want(key string, owner netip.Addr, until time.Time) bool {
	w := s.memory.wanted[key]
	if w == nil {
		if len(s.memory.wanted) >= maxWanted {
			return false
		}
		select {
		case s.ahead <- key:
		default:
			return false
		}
		w = &entry{}
		s.memory.wanted[key] = w
		if s.fetching < fetchers {
			s.fetching++
			go s.fetchAhead()
		}
	}
	w.pin(owner, until)
	return true
}

// fetchAhead gets what was promised, until there is no more of it.
func (s *Store) fetchAhead() {
	for {
		key, ok := s.nextWanted()
		if !ok {
			return
		}
		if l, _ := s.load(context.Background(), flight{key: key}, netip.Addr{}); l != nil {
			l.Release()
			continue
		}
		s.mu.Lock()
		if s.behind.find(key, time.Time{}, Everywhere) < 0 { // else memory is full, and the GET tries again
			s.memory.settle(key, netip.Addr{}, false)
		}
		s.mu.Unlock()
	}
}

// nextWanted returns a key whose promise still waits for its value. false = there is none, and the fetcher ends.
func (s *Store) nextWanted() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ahead) > 0 && !s.closed {
		key := <-s.ahead
		if s.memory.wanted[key] != nil {
			return key, true
		}
	}
	s.fetching--
	return "", false
}
