package tier

import (
	"bytes"
	"time"
)

// What follows is for values that must not be written over what Redis holds: session bindings, of which the older one
// is right. While Redis is silent such a change stands in L1. When Redis answers it gets the change together with what
// it is taken to have, and what it has in truth wins.

// Keep is SetIfAbsent in L1 alone, for a caller to whom Find has returned ErrSilent.
func (s *Store) Keep(ns, key string, value []byte, ttl time.Duration) (now []byte, set bool) {
	if !s.l1.fits(key, value) {
		return nil, false
	}
	o := operation{tiers: &s.tiers, id: id{ns, key}, began: s.now()}
	return o.setHereIfAbsent(value, ttl)
}

// Replace is CompareAndSwap, but what it stores while Redis does not answer gives way to what Redis has then, unless
// that is old.
func (s *Store) Replace(ns, key string, old, new []byte, ttl time.Duration) bool {
	o := s.begin(id{ns, key})
	defer o.end()
	return o.swap(old, new, ttl, oweReplace)
}

// Drop removes a value if it is the one given. What Redis has in its place stays.
func (s *Store) Drop(ns, key string, value []byte) {
	o := s.begin(id{ns, key})
	defer o.end()
	if o.seen.live && !bytes.Equal(o.seen.value, value) {
		return
	}
	if s.l2 == nil {
		s.l1.delete(o.id, o.began)
		return
	}
	life := o.tombstoneLife()
	ticket, kept := s.l1.deleteOnly(o.id, value, until(o.began, life), o.began)
	if !kept || !s.shared() {
		return
	}
	if _, err := o.ask(scriptDelete, millis(life), marked(value)); err == nil {
		s.l1.markPaid(o.id, ticket, s.now())
	}
}

// settleTime bounds Settle, and the time for which calls still wait after Redis was lost.
const settleTime = 500 * time.Millisecond

// Settle waits until Redis has got a change of a key that it did not answer to, so that another router that is asked
// for the key next does not answer that there is none. It waits for half a second at most, and not at all once Redis
// has been lost for as long: then other routers are without it too.
func (s *Store) Settle(ns, key string) {
	if s.l2 == nil {
		return
	}
	for end := time.Now().Add(settleTime); time.Now().Before(end) && s.l1.owes(id{ns, key}, s.now()); {
		if s.l2.breaker.OpenFor(time.Now()) > settleTime {
			return
		}
		s.wakeHealer()
		time.Sleep(time.Millisecond)
	}
}
