package kvstore

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/bounded"
)

// loads holds the reads of the tiers behind. All readers of one key wait for one read.
type loads struct {
	ahead bounded.Queue[string] // keys to fetch, since clients were promised them

	mu      sync.Mutex // guards flights
	flights map[flight]*read

	heap    atomic.Int64 // bytes of values on their way to a reader, for which the arena had no room
	maxHeap int64
}

func newLoads(maxValue int64) loads {
	return loads{ahead: make(bounded.Queue[string], maxWanted), maxHeap: maxHeaps * maxValue}
}

// flight is a read under way. A read of this machine never waits for one that goes further: two daemons that each take
// the other for the owner of a key would wait for each other.
type flight struct {
	key   string
	reach Reach
}

// read is the result that all readers of a key wait for.
type read struct {
	done  chan struct{}
	found bool // set before done is closed
}

const (
	loadTime  = 10 * time.Second     // of one read: 128 MiB at 13 MB/s
	maxHeaps  = 4                    // of the longest values, or as many bytes of shorter ones
	heapRetry = 5 * time.Millisecond // between two tries for room for a promised value
)

// takeHeap counts a value outside the arena; false = there are too many. A single one is never too large.
func (l *loads) takeHeap(size int64) bool {
	if n := l.heap.Add(size); n > l.maxHeap && n > size {
		l.heap.Add(-size)
		return false
	}
	return true
}

// load reads the key's value from the tiers behind into memory, or waits for another reader's load. from is the index
// of the Backing that had it, or -1 if it was already in memory.
func (s *Store) load(ctx context.Context, f flight, owner netip.Addr) (l *Lease, from int) {
	for {
		if l := s.lease(f.key, owner); l != nil {
			return l, -1 // another read has just ended
		}
		r, lead := s.loads.join(f)
		if lead {
			return s.leadWithin(ctx, f, r, owner)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, -1
		}
		if !r.found {
			return nil, -1
		}
		// A value that memory need not keep may have left again with the other reader: read it once more.
	}
}

// leadWithin is lead for a caller that leaves when ctx ends. The read goes on, as others may wait for it.
func (s *Store) leadWithin(ctx context.Context, f flight, r *read, owner netip.Addr) (*Lease, int) {
	if ctx.Done() == nil {
		return s.lead(ctx, f, r, owner)
	}
	type outcome struct {
		lease *Lease
		from  int
	}
	ended := make(chan outcome, 1)
	go func() {
		l, from := s.lead(ctx, f, r, owner)
		ended <- outcome{l, from}
	}()
	select {
	case o := <-ended:
		return o.lease, o.from
	case <-ctx.Done():
		go func() {
			if o := <-ended; o.lease != nil {
				o.lease.Release()
			}
		}()
		return nil, -1
	}
}

// lead does the one read of a key.
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

// arrival is room for a value that comes from a tier behind: in the arena, or on the heap if the arena is full.
type arrival struct {
	filling *Filling
	heap    []byte
}

// room takes room for a value. While arena and heap are full of values in use, a reader that was promised this value
// waits until ctx ends: LMCache's native client would wait for ever after a miss.
func (s *Store) room(ctx context.Context, key string, a Arrival) (r arrival, err error) {
	tick := time.NewTicker(heapRetry)
	defer tick.Stop()
	for {
		r.filling, err = s.reserve(key, a.Size, false)
		if err == nil {
			r.filling.entry.expires = a.Expires
			r.filling.entry.passing = a.Passing
			return r, nil
		}
		if !errors.Is(err, ErrFull) && !errors.Is(err, ErrQuiet) && !errors.Is(err, ErrTorn) {
			return r, err
		}
		if s.loads.takeHeap(a.Size) {
			r.heap = make([]byte, a.Size)
			return r, nil
		}
		s.mu.Lock()
		waits := s.memory.promised(key)
		s.mu.Unlock()
		if !waits {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, err
		case <-tick.C:
		}
	}
}

// pieces returns the room, in order.
func (r *arrival) pieces() [][]byte {
	if r.filling != nil {
		return r.filling.Pieces()
	}
	return [][]byte{r.heap}
}

// abort frees the room, if there is any.
func (r *arrival) abort(s *Store) {
	if r.filling != nil {
		r.filling.Abort()
	} else if r.heap != nil {
		s.freeHeap(int64(len(r.heap)))
	}
	*r = arrival{}
}

// fetch reads the value from the tier behind into its place in the arena. If the arena is full of values in use, the
// reader gets the value on the heap, as it may have been promised.
func (s *Store) fetch(ctx context.Context, key string, b Backing, owner netip.Addr) *Lease {
	var to arrival
	var found bool
	var err error
	torn := Touch(func() {
		found, err = b.Get(ctx, key, func(a Arrival) (pieces [][]byte, err error) {
			to.abort(s)
			to, err = s.room(ctx, key, a)
			if err != nil {
				return nil, err
			}
			return to.pieces(), nil
		})
	})
	if torn != nil {
		err = torn
	}
	if err != nil {
		s.count(func(n *counts) { n.loadErrors++ })
	}
	switch {
	case !found || err != nil:
		to.abort(s)
	case to.filling != nil:
		return to.filling.land(b, owner)
	case to.heap != nil:
		return &Lease{store: s, heap: to.heap}
	}
	return nil
}

// land makes the value that was read the value of the key, unless the key was put or deleted meanwhile.
func (f *Filling) land(b Backing, owner netip.Addr) *Lease {
	s, e := f.store, f.entry
	s.mu.Lock()
	defer s.mu.Unlock()
	if newer := s.memory.find(e.key, time.Now()); newer != nil || s.tear.open || !b.Exists(e.key, time.Time{}) {
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
	return &Lease{store: s, entry: e, first: true}
}

// A promise of a value in a tier behind is a pin that waits for the value. The value comes as soon as a fetcher is
// free, or with the client's GET if that is first; memory.add gives it the pin. So it is there for the GET, whatever
// the tier evicts meanwhile.

const (
	maxWanted = 4096 // promises of values that are not in memory yet: 64 GiB at 16 MiB each. No more are made
	fetchers  = 4    // reads of promised values at a time
)

// want promises a value that is not in memory and starts its fetch; false = there are too many. The caller holds mu.
func (s *Store) want(key string, owner netip.Addr, until time.Time) bool {
	w := s.memory.wanted[key]
	if w == nil {
		if len(s.memory.wanted) >= maxWanted {
			return false
		}
		if !s.loads.ahead.Put(key) {
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

// fetchAhead reads promised values until no promise waits.
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
		if s.behind.find(key, Everywhere) < 0 { // else memory is full, and the GET tries again
			s.memory.settle(key, netip.Addr{}, false)
		}
		s.mu.Unlock()
	}
}

// nextWanted returns a key whose promise still waits for its value. false = there is none, and the fetcher ends.
func (s *Store) nextWanted() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		for key := range s.loads.ahead.Waiting(maxWanted) {
			if s.memory.wanted[key] != nil {
				return key, true
			}
		}
	}
	s.fetching--
	return "", false
}
