package tier

import (
	"bytes"
	"errors"
	"time"
)

// What follows is for values that must not be written over what Redis holds: session bindings, of which the older one is
// right. While Redis is silent such a change stands in L1. When Redis answers it is told of the change together with what it is
// taken to have, and what it has in truth wins.

// ErrSilent says that Redis did not answer and memory does not hold the key: there may be a value, or none.
var ErrSilent = errors.New("tier: Redis does not answer, and memory does not hold the key")

// errForgot says that Redis has lost what it knew, and routers that still hold it have not put it back yet.
var errForgot = errors.New("tier: Redis has lost its data, and is being told again")

// Lost tells whether Redis is configured and does not answer: L1 decides every call.
func (s *Store) Lost() bool { return s.l2 != nil && s.l2.open.Load() }

// Keep is SetIfAbsent in L1 alone, for a caller that has heard from Find that Redis is silent.
func (s *Store) Keep(ns, key string, value []byte, ttl time.Duration) (now []byte, set bool) {
	if !s.l1.fits(key, value) {
		return nil, false
	}
	c := call{Store: s, ns: ns, key: key, now: s.now()}
	return c.keep(value, ttl)
}

// settleTime bounds Settle, and is for how long after Redis was lost it is still waited for.
const settleTime = 500 * time.Millisecond

// Settle waits until Redis has been told of a change of a key that it did not answer to, so that another router that is asked for
// the key next does not say that there is none. It waits for half a second at most, and not at all once Redis has been lost for
// as long: then other routers are without it too.
func (s *Store) Settle(ns, key string) {
	for end := time.Now().Add(settleTime); s.l2 != nil && time.Now().Before(end) && s.l1.owes(ns, key, s.now()); {
		if s.l2.lostFor() > settleTime {
			return
		}
		s.hurry()
		time.Sleep(time.Millisecond)
	}
}

// hurry wakes the healer.
func (s *Store) hurry() {
	select {
	case s.owed <- struct{}{}:
	default:
	}
}

// owes tells whether L2 has to be told of a change of a key.
func (m *memory) owes(ns, key string, now int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(ns, key, now)
	return e != nil && e.owes != paid
}

func (c *call) keep(value []byte, ttl time.Duration) (now []byte, set bool) {
	set = c.l1.swap(c.ns, c.key, until(c.now, ttl), c.now, c.owing(oweSwap), func(old []byte) ([]byte, bool, bool) {
		now = old
		return append([]byte{}, value...), false, old == nil
	})
	if set {
		now = value
		c.hurryUnlessLost()
	}
	return now, set
}

// hurryUnlessLost shortens the time in which other routers do not know of a change. While Redis is lost the pulse will do.
func (s *Store) hurryUnlessLost() {
	if s.shared() {
		s.hurry()
	}
}

// Replace is CompareAndSwap, but what it stores while Redis does not answer gives way to what Redis has then, unless that is
// old.
func (s *Store) Replace(ns, key string, old, new []byte, ttl time.Duration) bool {
	return s.compareAndSwap(ns, key, old, new, ttl, oweSwap)
}

// Drop removes a value if it is the one given. What Redis has in its place stays.
func (s *Store) Drop(ns, key string, value []byte) {
	c := s.begin(ns, key)
	defer c.end()
	if c.seen.live && !bytes.Equal(c.seen.value, value) {
		return
	}
	if s.l2 == nil {
		s.l1.remove(ns, key, c.now)
		return
	}
	ttl := minTombstone
	if c.seen.live {
		if ttl = left(c.now, c.seen.expires); ttl == 0 {
			ttl = maxTombstone
		}
	}
	ticket, kept := s.l1.dropping(ns, key, value, until(c.now, ttl), c.now)
	if !kept || !s.shared() {
		return
	}
	if _, err := c.ask(scriptDelete, millis(ttl), marked(value)); err == nil {
		s.l1.told(ns, key, ticket, s.now())
	}
}

// dropping puts a tombstone in the place of a value that L2 is taken to have.
func (m *memory) dropping(ns, key string, value []byte, expires, now int64) (ticket uint32, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(ns, key, now)
	if e != nil && !e.dead && !bytes.Equal(e.value, value) { // changed since the caller looked
		return 0, false
	}
	ticket, ok = m.store(ns, key, nil, expires, now, oweDrop)
	if e = m.find(ns, key, now); ok && e.base == nil { // L2 had nothing, unless it has taken the value in unheard
		e.base = value
	}
	return ticket, ok
}
