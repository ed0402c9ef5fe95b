package kvstore

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Backing is a tier behind the memory: a disk, or a server. Its methods are called by many at once, Exists, Put and
// Delete under the store's lock or close to it: these three never wait, and never call the store.
type Backing interface {
	// Exists reports, from its own memory, whether it has the key. With a time above zero it keeps the value until then.
	Exists(key string, keep time.Time) bool

	// Get calls place once with the value's size and end, and fills the pieces that it gets. false = it has none. It
	// returns when ctx ends.
	Get(ctx context.Context, key string, place Place) (bool, error)

	// Put takes the lease over and releases it later, from a goroutine of its own; false = it does not want the value.
	Put(key string, expires time.Time, value *Lease) bool

	// Delete forgets the key, and reports whether it had it.
	Delete(key string) bool
}

// Place returns room for a value that comes from a Backing.
type Place func(size int64, expires time.Time) ([][]byte, error)

// loads are the reads of what is behind. Many who ask for one key wait for one read.
type loads struct {
	mu      sync.Mutex // guards flights
	flights map[string]chan struct{}

	heaps atomic.Int64 // values on their way to a reader that the arena had no room for
}

const (
	loadTime = 10 * time.Second // of one read: 128 MiB at 13 MB/s
	maxHeaps = 4                // values of up to 128 MiB each; after that a miss
)

// load gets the key's value from behind into memory, or waits for who does.
func (s *Store) load(ctx context.Context, key string, owner netip.Addr) *Lease {
	wait, lead := s.loads.join(key)
	if !lead {
		select {
		case <-wait:
			return s.lease(key, owner)
		case <-ctx.Done():
			return nil
		}
	}
	defer s.loads.leave(key)
	if l := s.lease(key, owner); l != nil {
		return l // another read has just ended
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTime) // others wait for it too
	defer cancel()
	return s.fetch(ctx, key, owner)
}

// join returns what to wait for, or that the caller is the one to read.
func (l *loads) join(key string) (wait chan struct{}, lead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait, ok := l.flights[key]; ok {
		return wait, false
	}
	if l.flights == nil {
		l.flights = map[string]chan struct{}{}
	}
	wait = make(chan struct{})
	l.flights[key] = wait
	return wait, true
}

func (l *loads) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.flights[key])
	delete(l.flights, key)
}

// fetch reads the value from behind into its place in the arena. If that is full of values in use, the reader gets it
// in memory of its own, as it may have been promised.
func (s *Store) fetch(ctx context.Context, key string, owner netip.Addr) *Lease {
	var filling *Filling
	var onHeap []byte
	var end time.Time
	place := func(size int64, expires time.Time) ([][]byte, error) {
		end = expires
		f, err := s.reserve(key, size)
		if err == nil {
			filling = f
			return f.Pieces(), nil
		}
		if !errors.Is(err, ErrFull) && !errors.Is(err, ErrQuiet) {
			return nil, err
		}
		if s.loads.heaps.Add(1) > maxHeaps {
			s.loads.heaps.Add(-1)
			return nil, err
		}
		onHeap = make([]byte, size)
		return [][]byte{onHeap}, nil
	}
	found, err := s.config.Backing.Get(ctx, key, place)
	good := found && err == nil
	if err != nil {
		s.count(func(n *counts) { n.loadErrors++ })
	}
	switch {
	case filling != nil && good:
		return filling.land(end, owner)
	case filling != nil:
		filling.Abort()
	case onHeap != nil && good:
		return &Lease{store: s, heap: onHeap}
	case onHeap != nil:
		s.loads.heaps.Add(-1)
	}
	return nil
}
