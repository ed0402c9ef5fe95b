package tier

import (
	"context"
	"time"
)

// Store keeps small values with a TTL, in memory and, if configured, in Redis. It is safe for concurrent use.
//
// A ttl of 0 or less means no expiry. Values returned are shared: do not change them; values given are copied. No call
// fails or waits because of Redis, but Find may return that the answer is unknown: see the package comment. A value
// larger than half of MaxBytes is refused, and counted, and so is a promised one whose owner has no room (see
// [Owners]).
type Store struct{ tiers }

// New makes a store. It fails on a bad URL only, never because Redis is down, and does not wait for it. Call Run.
func New(conf Config) (*Store, error) {
	conf = conf.withDefaults()
	s := &Store{tiers{clock: clock{start: conf.Clock(), read: conf.Clock}, l1: newMemory(conf),
		wake: make(chan struct{}, 1)}}
	if conf.Redis == "" {
		return s, nil
	}
	var err error
	s.l2, err = newRemote(conf)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// readAheadTime bounds what a start waits for Redis: some 100,000 sessions.
const readAheadTime = 2 * time.Second

// Open is New and Load, for a start: it waits two seconds at most, and logs what came of it.
func Open(conf Config) (*Store, error) {
	s, err := New(conf)
	if err != nil || conf.Redis == "" {
		return s, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readAheadTime)
	defer cancel()
	log := conf.withDefaults().Log
	if n, err := s.Load(ctx); err != nil {
		log.Warn("sessions are not read ahead; each is looked up when it comes", "error", err)
	} else {
		log.Info("sessions read ahead", "values", n)
	}
	return s, nil
}

// Load reads into memory what stands in Redis under the prefix, and returns how many values that were. Call it once,
// after New and before the store is used: a router that starts under load would else ask Redis for every session at
// once, and would not know where a session lives whose answer is late. It stops when ctx ends or memory is full, with
// what has come until then; that is no error, since what is missing is read when it is asked for, and so are values
// over 8 KiB. Without a Redis it does nothing.
func (s *Store) Load(ctx context.Context) (int, error) { return readAhead(ctx, &s.tiers) }

// Run removes what is expired, detects that Redis is lost or back, and sends it what it missed, until ctx is done.
func (s *Store) Run(ctx context.Context) { healer{&s.tiers}.run(ctx) }

// Close closes the connections to Redis. Changes that Redis has not got yet are lost to other routers.
func (s *Store) Close() error {
	if s.l2 == nil {
		return nil
	}
	return s.l2.c.Close()
}

// Lost reports whether Redis is configured and does not answer: L1 decides every call.
func (s *Store) Lost() bool { return s.l2 != nil && s.l2.breaker.Open() }

// SetOwners sets how many owners of values share half of memory, see [Owners]; fewer than 1 count as 1, the default.
func (s *Store) SetOwners(n int) { s.l1.setOwners(n) }

// Room reports whether the share of a new value's owner has room for it. Values that are not promised find room.
func (s *Store) Room(ns, key string, value []byte) bool { return s.l1.admits(ns, key, value) }

// Local returns a view of the store in which each namespace may hold so many keys and bytes. Its Run is to be called.
func (s *Store) Local(keys, bytes int) *Local { return newLocal(&s.tiers, keys, bytes) }

// Each calls f for the live values of a namespace that L1 holds, until f returns false, in no order. It is for pages:
// Redis may hold more. expires is zero for a value without expiry. f may call the store; what changes meanwhile may or
// may not be seen.
func (s *Store) Each(ns string, f func(key string, value []byte, expires time.Time) bool) {
	s.l1.each(ns, s.clock, func(r row) bool { return f(r.key, r.value, s.date(r.expires)) })
}

// Stats returns the figures of this moment.
func (s *Store) Stats() Stats {
	st := s.n.stats()
	s.l1.stats(&st)
	if s.l2 != nil {
		s.l2.stats(&st.L2)
	}
	return st
}
