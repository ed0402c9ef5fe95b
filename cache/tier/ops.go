package tier

import (
	"bytes"
	"errors"
	"strconv"
	"time"
)

// ErrSilent means that Redis did not answer and memory does not hold the key: there may be a value, or none.
var ErrSilent = errors.New("tier: Redis does not answer, and memory does not hold the key")

// Get returns the value of a key. What Redis has confirmed within the last second L1 answers itself.
func (s *Store) Get(ns, key string) ([]byte, bool) {
	value, _, ok, _ := s.Find(ns, key)
	return value, ok
}

// Find returns the value of a key and what is left of its life, 0 if it does not end. If Redis is silent and there may
// be one, it returns ErrSilent, which is not "there is none".
func (s *Store) Find(ns, key string) (value []byte, life time.Duration, ok bool, err error) {
	o := s.begin(id{ns, key})
	defer o.end()
	if had := o.seen.live; !had || !o.alone() && o.began-o.seen.checked >= int64(fresh) {
		o.refresh()
		s.n.countRead(had, o.seen.live, s.l2 != nil)
	} else {
		s.n.l1Hits.Add(1)
	}
	switch {
	case o.seen.live:
		return o.seen.value, o.ttl(), true, nil
	case s.l2 == nil, o.sure, o.seen.owes == oweDelete:
		return nil, 0, false, nil
	}
	s.n.silent.Add(1)
	return nil, 0, false, ErrSilent
}

// Set stores a value and replaces the old one. If the new value is refused, the old one remains.
func (s *Store) Set(ns, key string, value []byte, ttl time.Duration) {
	if !s.l1.fits(key, value) {
		return
	}
	o := operation{tiers: &s.tiers, id: id{ns, key}, began: s.now()}
	defer o.end()
	shared := s.shared()
	w := write{value: append([]byte{}, value...), expires: until(o.began, ttl)}
	if !shared {
		w.owes = s.owing(oweSet)
	}
	ticket, ok := s.l1.put(o.id, w, o.began)
	if !ok || !shared {
		return
	}
	if err := s.l2.set(o.deadline(), o.id, value, ttl); err != nil {
		s.l1.markOwing(o.id, s.now())
		return
	}
	s.l1.markPaid(o.id, ticket, o.began)
}

// SetIfAbsent stores a value if the key has none, in one step among all routers that share the Redis. It returns the
// value that the key has afterwards, and whether that is the one given. It returns nil, false if the value is too
// large, or if its owner's share is used up. If Redis does not answer, L1 keeps the value until Redis does, and then
// yields to what Redis has.
func (s *Store) SetIfAbsent(ns, key string, value []byte, ttl time.Duration) (now []byte, set bool) {
	o := s.begin(id{ns, key})
	defer o.end()
	o.refresh()
	if o.seen.live {
		return o.seen.value, false
	}
	if !s.l1.fits(key, value) || !s.l1.admits(ns, key, value) {
		return nil, false
	}
	if !o.alone() {
		if r, err := o.ask(scriptSetIfAbsent, marked(value), millis(ttl)); err == nil {
			set = r.kind == kindStored
			if set {
				r.value = append([]byte{}, value...)
			}
			o.adopt(r, set)
			return o.seen.value, set
		}
	}
	return o.setHereIfAbsent(value, ttl)
}

// Told stores a value that another router has written. No value means that the other router has removed it. The report
// is believed where nothing is known here. Where something else stands, Redis is asked at the next read, which knows
// which change was last; without a Redis the newest report counts.
func (s *Store) Told(ns, key string, value []byte, ttl time.Duration) {
	o := s.begin(id{ns, key})
	switch {
	case o.seen.owes != paid: // a change made here has not reached Redis yet, which will compare the two
	case o.seen.live && bytes.Equal(o.seen.value, value):
	case s.l2 == nil && len(value) == 0:
		s.l1.delete(o.id, o.began)
	case s.l2 == nil:
		s.Set(ns, key, value, ttl)
	case o.seen.live:
		s.l1.distrust(o.id, o.began)
	case len(value) > 0 && s.l1.fits(key, value):
		o.adopt(reply{kind: kindValue, value: append([]byte{}, value...), ttl: ttl}, false)
	}
}

// Touch gives a value a new TTL from now on, and returns whether there is one.
func (s *Store) Touch(ns, key string, ttl time.Duration) bool {
	o := s.begin(id{ns, key})
	defer o.end()
	if !o.alone() {
		payload, _ := o.backup()
		if r, err := o.ask(scriptTouch, payload, millis(ttl)); err == nil {
			o.adopt(r, true)
			return o.seen.live
		}
	}
	return s.l1.touch(o.id, until(o.began, ttl), o.began, s.owing(oweTouch))
}

// Delete removes a value. Other routers that share the Redis cease to serve it within a second.
func (s *Store) Delete(ns, key string) {
	o := s.begin(id{ns, key})
	defer o.end()
	if s.l2 == nil {
		s.l1.delete(o.id, o.began)
		return
	}
	// If L1 does not know the key, Redis keeps a tombstone only if it had a value.
	life := o.tombstoneLife()
	ticket, kept := s.l1.put(o.id, write{expires: until(o.began, life), owes: oweDelete}, o.began)
	if !s.shared() {
		return
	}
	if !o.seen.live {
		life = 0
	}
	if _, err := o.ask(scriptDelete, millis(life), ""); err == nil && kept {
		s.l1.markPaid(o.id, ticket, s.now())
	}
}

// CompareAndSwap stores new if old stands there; a nil old means that nothing may stand there. It is one step among all
// routers that share the Redis; while Redis is lost, among this router's requests, and Redis gets it later whatever it
// has then.
func (s *Store) CompareAndSwap(ns, key string, old, new []byte, ttl time.Duration) bool {
	o := s.begin(id{ns, key})
	defer o.end()
	return o.swap(old, new, ttl, oweSet)
}

// Add adds delta to a counter and returns the sum. A counter that is not there begins at 0 and lives for ttl; one that
// is there keeps its expiry. Its value is the decimal digits. False: the value is no number, or the sum overflows.
// Counting is exact among all routers that share the Redis; while Redis is lost each counts on from what it knows.
func (s *Store) Add(ns, key string, delta int64, ttl time.Duration) (int64, bool) {
	o := s.begin(id{ns, key})
	defer o.end()
	if !s.l1.fits(key, make([]byte, maxDigits)) {
		return 0, false
	}
	o.refresh()
	if !o.alone() {
		if r, err := o.ask(scriptAdd, delta, millis(ttl)); err == nil {
			if r.kind != kindStored {
				return 0, false
			}
			o.adopt(r, true)
			sum, err := strconv.ParseInt(string(r.value), 10, 64)
			return sum, err == nil
		}
	}
	var sum int64
	w := write{expires: until(o.began, ttl), keepExpiry: true, owes: s.owing(oweSet)}
	if !s.l1.update(o.id, w, o.began, func(now []byte) (digits []byte, ok bool) {
		sum, ok = plus(now, delta)
		return strconv.AppendInt(nil, sum, 10), ok
	}) {
		return 0, false
	}
	return sum, true
}
