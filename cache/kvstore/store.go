package kvstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/arena"
	"github.com/warmpath/warmpath/cache/kvstore/catalog"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
	"github.com/warmpath/warmpath/cache/kvstore/evict"
)

// Store keeps values in an arena. Many goroutines may call its methods at once, until Close.
type Store struct {
	config Config
	behind behind
	loads  loads

	mu         sync.Mutex // guards all below
	memory     memory
	counts     counts
	quietUntil time.Time
	closed     bool
	tear       tear          // while there is one, nothing is taken
	fetching   int           // goroutines that empty ahead
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
	s := &Store{config: c, behind: newBehind(c.Disk, c.Far), loads: newLoads(c.MaxValue),
		idle: make(chan struct{}), memory: memory{arena: a, policy: policy,
			entries: map[string]*entry{}, keys: catalog.New(0), pinned: map[*entry]struct{}{}, wanted: map[string]*entry{},
			kept: map[string]*entry{}, holds: newHolds(a.Space.Size()), seed: maphash.MakeSeed(), losses: c.Losses,
			maxRecords: records}}
	s.memory.disk = s
	s.tear = tear{arena: a, segment: c.Segment, log: c.Log}
	if a.Attached {
		s.quietUntil = time.Now().Add(c.Quiet)
		c.Log.Warn("workers have the shared memory of the last process mapped: no value is taken before its leases are "+
			"over", "segment", c.Segment, "wait", c.Quiet)
	}
	return s, nil
}

// Run does the timed work until ctx ends: values and pins expire, and a deleted name of the segment is restored. It
// also takes the memory from the system, so that puts need not wait for that.
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
			s.tend(now)
		}
	}
}

func (s *Store) tend(now time.Time) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.memory.sweep(now)
		if s.tear.found(len(s.memory.entries)) {
			s.memory.dropAll()
			if s.memory.leases == 0 && s.memory.fillings == 0 { // they would find zeros in the place of a value
				s.tear.mend()
			}
		}
	}
	s.mu.Unlock()
	if !closed {
		s.memory.arena.Tend()
	}
}

// tendEvery bounds how long the name of a segment is missing after a worker has deleted it.
const tendEvery = 250 * time.Millisecond

// Close refuses all calls from now on, waits up to wait for readers, and frees the memory. Run must have returned. If a
// reader remains, the memory stays with the process and Close returns an error.
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

// checkIdle signals Close when the arena is unused. The caller holds mu.
func (s *Store) checkIdle() {
	if s.closed && s.memory.leases == 0 && s.memory.fillings == 0 {
		close(s.idle)
	}
}

// Get leases the value of a key, from memory or else from the tiers behind; nil = there is none. A client's address
// redeems one promise of Exists; the zero Addr redeems none. ctx bounds the wait for the tiers behind.
func (s *Store) Get(ctx context.Context, key string, owner netip.Addr) *Lease {
	return s.get(ctx, flight{key: key}, owner)
}

func (s *Store) get(ctx context.Context, f flight, owner netip.Addr) *Lease {
	l, from := s.lease(f.key, owner), -1
	if l == nil && len(s.behind.within(f.reach)) > 0 {
		l, from = s.load(ctx, f, owner)
	}
	s.count(func(n *counts) {
		s.settle(ctx, f, owner, l != nil)
		switch {
		case l == nil:
			n.misses++
		case from < 0:
			n.hits++
		case from < s.behind.here:
			n.fromDisk++
		default:
			n.fromFar++
		}
		if l != nil {
			n.read += uint64(l.Size())
		}
	})
	return l
}

// settle ends promises after a read. The caller holds mu. A miss on this machine may be a hit elsewhere, or still come.
func (s *Store) settle(ctx context.Context, f flight, owner netip.Addr, found bool) {
	if f.reach != Everywhere || !found && ctx.Err() != nil {
		return
	}
	if s.memory.settle(f.key, owner, found) {
		s.behind.unkeep(f.key)
	}
}

// lease leases a value in memory.
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

// Exists reports whether the key has a value, without a wait. With a promise above zero the value stays for that time,
// or until the owner has read it, whatever else is put; only a deletion ends that. Each promise is redeemed by one Get.
func (s *Store) Exists(key string, owner netip.Addr, promise time.Duration) bool {
	return s.exists(key, pin{owner: owner}, promise, Everywhere)
}

// Promise is Exists for a client that waits for ever for a promised value. It returns false for a value that a tier
// behind may have lost. If the value is remote, the store fetches it at once and keeps it until the client has read it.
func (s *Store) Promise(key string, owner netip.Addr, lasts time.Duration) bool {
	return s.exists(key, pin{owner: owner, firm: true}, lasts, Everywhere)
}

func (s *Store) exists(key string, to pin, promise time.Duration, reach Reach) bool {
	other, split := chunks.Mate(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.closed {
		return false
	}
	if promise > 0 {
		to.until = now.Add(promise)
	}
	if !split || reach != Everywhere { // at a daemon of the pool the other half may be another's
		return s.existsOne(key, to, reach, now)
	}
	// Both are looked up before one is promised: a tier behind finds out later about what it does not know.
	here, there := s.existsOne(key, pin{}, reach, now), s.existsOne(other, pin{}, reach, now)
	return here && there && s.existsOne(other, to, reach, now) && s.existsOne(key, to, reach, now)
}

// existsOne is exists for one key, until to.until; zero = no promise. The caller holds mu.
func (s *Store) existsOne(key string, to pin, reach Reach, now time.Time) bool {
	if e := s.memory.find(key, now); e != nil {
		return to.until.IsZero() || s.memory.pin(e, to.owner, to.until) || !to.firm
	}
	i := s.behind.find(key, reach)
	switch {
	case i < 0 || to.until.IsZero():
		return i >= 0
	case i < s.behind.here:
		return s.keep(i, key, to)
	case !to.firm:
		return true
	}
	return s.behind.sure(i, key) && s.want(key, to.owner, to.until)
}

// freeHeap counts down a value outside the arena whose reader is done.
func (s *Store) freeHeap(size int64) { s.loads.heap.Add(-size) }

// maxKept bounds the values on the disk with a promise. Above that number, a client that accepts a miss gets no
// promise, and a client that would wait for ever is told that the value is not there.
const maxKept = 1 << 16

// keep promises a value that this machine's disk has. The caller holds mu.
func (s *Store) keep(i int, key string, to pin) bool {
	k := s.memory.kept[key]
	if k == nil && len(s.memory.kept) >= maxKept {
		return !to.firm
	}
	if !s.behind.all[i].Exists(key, to.until) {
		return false
	}
	if k == nil {
		k = &entry{}
		s.memory.kept[key] = k
	}
	k.pin(to.owner, to.until)
	return true
}

// rescue offers the disk a value that memory is about to evict. The caller holds mu.
func (s *Store) rescue(e *entry) bool {
	return s.behind.rescue(e, func() *Lease {
		s.memory.hold(e)
		return &Lease{store: s, entry: e}
	})
}

// Info returns the length and the end of a value that this machine has, without a wait; a zero end means none.
func (s *Store) Info(key string) (size int64, expires time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.memory.find(key, time.Now()); e != nil && !s.closed {
		return e.size, e.expires, true
	}
	return s.behind.info(key)
}

// Page lists keys that begin with prefix and come after the key after, in order, and at most limit of them. "" comes
// before all keys. A caller that asks for one page after the other can miss only keys that were put meanwhile. A tier
// behind whose keys cannot be listed (it is no [Lister]) is left out.
func (s *Store) Page(prefix, after string, limit int) []Listed {
	return page(s.memory.keys, &s.behind, span{prefix: prefix, after: after, limit: limit})
}

// Delete deletes a value and reports whether it was there. Its readers keep their leases.
func (s *Store) Delete(key string) bool { return s.delete(key, Everywhere) }

func (s *Store) delete(key string, reach Reach) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	e := s.memory.find(key, time.Now())
	if e != nil {
		s.memory.drop(e)
	}
	delete(s.memory.wanted, key)
	delete(s.memory.kept, key)
	behind := s.behind.delete(key, reach)
	if e == nil && behind {
		s.memory.losses.Note(key)
	}
	return e != nil || behind
}

// Reserve takes room for a value of a known size, which the caller fills and then commits or aborts. Until then the key
// keeps its old value. While other clients are sending values into half of the room, Reserve waits for one of them, up
// to writingWait. Its error is one of Err....
func (s *Store) Reserve(key string, size int64) (*Filling, error) {
	f, err := s.reserve(key, size, true)
	for end := time.Now().Add(writingWait); err == ErrWriting && time.Now().Before(end); {
		time.Sleep(writingRetry)
		f, err = s.reserve(key, size, true)
	}
	if err != nil {
		s.count(func(n *counts) { n.refused[err]++ })
	}
	return f, err
}

const (
	// writingShare of the arena is for values that clients are sending; a single value may be larger. Without a bound a
	// client that announces values and sends none would evict everything.
	writingShare = 2

	writingWait  = 2 * time.Second // redis-py gives a SET up after five
	writingRetry = 5 * time.Millisecond
)

// reserve is Reserve without a wait; announced = a client sends the value.
func (s *Store) reserve(key string, size int64, announced bool) (*Filling, error) {
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
	case s.tear.open:
		return nil, ErrTorn
	}
	if n := s.memory.announced; announced && n > 0 && n+size > s.memory.arena.Space.Size()/writingShare {
		return nil, ErrWriting
	}
	e := s.memory.reserve(key, size, now)
	if e == nil {
		return nil, ErrFull
	}
	if announced {
		e.announced = true
		s.memory.announced += size
	}
	return &Filling{store: s, entry: e}, nil
}

// MaxBytes returns the bound of the store's memory.
func (s *Store) MaxBytes() int64 { return s.config.MaxBytes }

// Policy returns the name of the eviction policy.
func (s *Store) Policy() string { return s.config.Policy }

// commit returns the channels that Commit has to wait for.
func (s *Store) commit(e *entry, t Terms, reach Reach) (waits []<-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.checkIdle()
	now := time.Now()
	if s.tear.open { // while the value was written
		s.memory.abandon(e)
		return nil, false
	}
	if t.When != Always {
		present := s.memory.find(e.key, now) != nil || s.behind.find(e.key, reach) >= 0
		if present != (t.When == IfPresent) {
			s.memory.abandon(e)
			return nil, false
		}
	}
	if t.Life > 0 {
		e.expires = now.Add(t.Life)
	}
	e.put = true
	s.memory.takeOver(e)
	s.memory.add(e)
	s.counts.puts++
	s.counts.written += uint64(e.size)
	return s.behind.put(e, reach, func() *Lease {
		s.memory.hold(e)
		return &Lease{store: s, entry: e}
	}), true
}
