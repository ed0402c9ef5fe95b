package tier

import (
	"bytes"
	"context"
	"math"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// call is one operation on one key.
type call struct {
	*Store
	ns, key string
	now     int64
	seen    seen // what L1 knew, or what L2 told since
	lost    bool // L2 did not answer: it is not asked again in this call
	sure    bool // L2 answered: what seen says is so
	ctx     context.Context
	cancel  context.CancelFunc
}

// begin looks into L1 and, where L2 is to be asked, starts the one clock of this call's time with L2.
func (s *Store) begin(ns, key string) call {
	c := call{Store: s, ns: ns, key: key, now: s.now()}
	stale := int64(math.MinInt64)
	if s.shared() {
		stale = c.now - int64(fresh)
	}
	c.seen = s.l1.look(ns, key, c.now, stale)
	return c
}

// shared says whether L2 is there and answers.
func (s *Store) shared() bool { return s.l2 != nil && !s.l2.open.Load() }

// alone says that L1 decides this call: no L2, or L2 is lost, or has not been told yet what stands here.
func (c *call) alone() bool { return c.seen.owes != paid || c.lost || !c.shared() }

// owing is what a change owes to L2 if it is made in L1 alone.
func (s *Store) owing(d debt) debt {
	if s.l2 == nil {
		return paid
	}
	return d
}

func (c *call) ask(script *redis.Script, args ...any) (reply, error) {
	r, err := c.l2.ask(c.within(), script, c.l2.key(c.ns, c.key), args...)
	if err == nil && r.kind == 'u' {
		err = errForgot
	}
	c.lost, c.sure = err != nil, err == nil
	return r, err
}

func (c *call) within() context.Context {
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithTimeout(context.Background(), c.l2.timeout)
	}
	return c.ctx
}

func (c *call) end() {
	if c.cancel != nil {
		c.cancel()
	}
}

// restore is what L2 shall take back if it has nothing.
func (c *call) restore() (payload []byte, ttl int64) {
	if !c.seen.live {
		return nil, 0
	}
	return marked(c.seen.value), millis(left(c.now, c.seen.expires))
}

// learn brings L1 and c.seen to what L2 answered.
func (c *call) learn(r reply, changed bool) {
	known := c.seen.live || c.seen.dead
	c.seen.live, c.seen.value = r.kind == 'v' || r.kind == 'r' || r.kind == 's', r.value
	if r.kind == 'r' {
		c.l2.restored.Add(1)
	}
	if !c.seen.live {
		c.seen.value = nil
	}
	c.seen.expires = until(c.now, r.ttl)
	c.l1.settle(c.ns, c.key, c.seen.ticket, c.seen.value, c.seen.expires, c.now, changed)
	if !known && c.seen.live {
		c.l1.hold(c.ns, c.key, c.seen.value, c.seen.expires, c.now)
	}
}

// refresh asks L2 for a value that L1 does not have, or that it has not heard of for a while.
func (c *call) refresh() {
	if c.alone() || c.seen.live && c.now-c.seen.checked < int64(fresh) {
		return
	}
	payload, ttl := c.restore()
	if r, err := c.ask(scriptRead, payload, ttl); err == nil {
		c.learn(r, false)
	}
}

// Get returns the value of a key. What L1 heard of within the last second it answers itself.
func (s *Store) Get(ns, key string) ([]byte, bool) {
	value, ok, _ := s.Find(ns, key)
	return value, ok
}

// Find is Get that tells "there is none" from "nobody can say": ErrSilent.
func (s *Store) Find(ns, key string) (value []byte, ok bool, err error) {
	c := s.begin(ns, key)
	defer c.end()
	if had := c.seen.live; !had || !c.alone() && c.now-c.seen.checked >= int64(fresh) {
		c.refresh()
		s.n.got(had, c.seen.live, s.l2 != nil)
	} else {
		s.n.l1Hits.Add(1)
	}
	switch {
	case c.seen.live:
		return c.seen.value, true, nil
	case s.l2 == nil, c.sure, c.seen.owes == oweDelete:
		return nil, false, nil
	}
	s.n.silent.Add(1)
	return nil, false, ErrSilent
}

// Set stores a value, over whatever stands there. What is refused leaves what stands there.
func (s *Store) Set(ns, key string, value []byte, ttl time.Duration) {
	if !s.l1.fits(key, value) {
		return
	}
	now, owes, shared := s.now(), paid, s.shared()
	if !shared {
		owes = s.owing(oweSet)
	}
	ticket, ok := s.l1.put(ns, key, append([]byte{}, value...), until(now, ttl), now, owes)
	if !ok || !shared {
		return
	}
	c := call{Store: s, ns: ns, key: key, now: now}
	defer c.end()
	if err := s.l2.set(c.within(), s.l2.key(ns, key), value, time.Duration(millis(ttl))*time.Millisecond); err != nil {
		s.l1.untold(ns, key, s.now())
		return
	}
	s.l1.told(ns, key, ticket, now)
}

// SetIfAbsent stores a value if none stands there, in one step among all routers that share the Redis. It returns what
// stands there afterwards and whether that is the value given; nil, false if it was refused for its size. If Redis does not
// answer, the value stands in L1 until Redis does, and gives way to what Redis has then.
func (s *Store) SetIfAbsent(ns, key string, value []byte, ttl time.Duration) (now []byte, set bool) {
	c := s.begin(ns, key)
	defer c.end()
	c.refresh()
	if c.seen.live {
		return c.seen.value, false
	}
	if !s.l1.fits(key, value) {
		return nil, false
	}
	if !c.alone() {
		if r, err := c.ask(scriptSetIfAbsent, marked(value), millis(ttl)); err == nil {
			if set = r.kind == 's'; set {
				r.value = append([]byte{}, value...)
			}
			c.learn(r, set)
			return c.seen.value, set
		}
	}
	return c.keep(value, ttl)
}

// Touch gives a value a new TTL from now on, and says whether there is one.
func (s *Store) Touch(ns, key string, ttl time.Duration) bool {
	c := s.begin(ns, key)
	defer c.end()
	if !c.alone() {
		payload, _ := c.restore()
		if r, err := c.ask(scriptTouch, payload, millis(ttl)); err == nil {
			c.learn(r, true)
			return c.seen.live
		}
	}
	return s.l1.touch(ns, key, until(c.now, ttl), c.now, s.owing(oweTouch))
}

// Delete removes a value. Other routers that share the Redis cease to serve it within a second.
func (s *Store) Delete(ns, key string) {
	c := s.begin(ns, key)
	defer c.end()
	if s.l2 == nil {
		s.l1.remove(ns, key, c.now)
		return
	}
	// Of a key that L1 does not know Redis keeps a tombstone only if there was a value.
	known, ttl := time.Duration(0), minTombstone
	if c.seen.live {
		if known = left(c.now, c.seen.expires); known == 0 {
			known = maxTombstone
		}
		ttl = known
	}
	ticket, kept := s.l1.put(ns, key, nil, until(c.now, ttl), c.now, oweDelete)
	if !s.shared() {
		return
	}
	if _, err := c.ask(scriptDelete, millis(known), ""); err == nil && kept {
		s.l1.told(ns, key, ticket, s.now())
	}
}

// CompareAndSwap stores new if old stands there; a nil old means that nothing may stand there. It is one step among all
// routers that share the Redis; while Redis is lost, among this router's requests, and Redis is told of it later whatever it
// has then.
func (s *Store) CompareAndSwap(ns, key string, old, new []byte, ttl time.Duration) bool {
	return s.compareAndSwap(ns, key, old, new, ttl, oweSet)
}

func (s *Store) compareAndSwap(ns, key string, old, new []byte, ttl time.Duration, later debt) bool {
	c := s.begin(ns, key)
	defer c.end()
	if !s.l1.fits(key, new) {
		return false
	}
	if c.refresh(); !c.alone() {
		var before []byte
		if old != nil {
			before = marked(old)
		}
		if r, err := c.ask(scriptSwap, before, marked(new), millis(ttl)); err == nil {
			set := r.kind == 's'
			if set {
				r.value = append([]byte{}, new...)
			}
			c.learn(r, set)
			return set
		}
	}
	return s.l1.swap(ns, key, until(c.now, ttl), c.now, s.owing(later), func(now []byte) ([]byte, bool, bool) {
		same := (now != nil) == (old != nil) && bytes.Equal(now, old)
		return append([]byte{}, new...), false, same
	})
}

// Add adds delta to a counter and returns the sum. A counter that is not there begins at 0 and lives for ttl; one that is
// there keeps its expiry. Its value is the decimal digits. False: the value is no number, or the sum overflows. Counting is
// exact among all routers that share the Redis; while Redis is lost each counts on from what it knows.
func (s *Store) Add(ns, key string, delta int64, ttl time.Duration) (int64, bool) {
	c := s.begin(ns, key)
	defer c.end()
	if !s.l1.fits(key, make([]byte, 20)) {
		return 0, false
	}
	if c.refresh(); !c.alone() {
		if r, err := c.ask(scriptAdd, delta, millis(ttl)); err == nil {
			if r.kind != 's' {
				return 0, false
			}
			c.learn(r, true)
			sum, err := strconv.ParseInt(string(r.value), 10, 64)
			return sum, err == nil
		}
	}
	var sum int64
	ok := s.l1.swap(ns, key, until(c.now, ttl), c.now, s.owing(oweSet), func(now []byte) ([]byte, bool, bool) {
		var ok bool
		sum, ok = plus(now, delta)
		return strconv.AppendInt(nil, sum, 10), true, ok
	})
	if !ok {
		return 0, false
	}
	return sum, true
}

// plus adds to decimal digits; none are 0. It is as strict as Redis: what it does not write itself is no number.
func plus(digits []byte, delta int64) (int64, bool) {
	if digits == nil {
		return delta, true
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != string(digits) {
		return 0, false
	}
	sum := n + delta
	return sum, (sum > n) == (delta > 0)
}
