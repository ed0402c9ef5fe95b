package served

import (
	"bytes"
	"time"

	"github.com/warmpath/warmpath/daemon/request/session"
)

// store keeps the sessions of one run, on its clock. Not safe for concurrent use.
type store struct {
	now    func() time.Time
	values map[[2]string]stored
}

type stored struct {
	value   []byte
	expires time.Time
}

func newStore(now func() time.Time) *store { return &store{now: now, values: map[[2]string]stored{}} }

// Find implements [session.Store].
func (s *store) Find(ns, key string) ([]byte, time.Duration, bool, error) {
	e, ok := s.values[[2]string{ns, key}]
	life := e.expires.Sub(s.now())
	if !ok || life <= 0 {
		return nil, 0, false, nil
	}
	return e.value, life, true, nil
}

// SetIfAbsent implements [session.Store].
func (s *store) SetIfAbsent(ns, key string, value []byte, ttl time.Duration) ([]byte, bool) {
	if old, _, ok, _ := s.Find(ns, key); ok {
		return old, false
	}
	s.values[[2]string{ns, key}] = stored{value: bytes.Clone(value), expires: s.now().Add(ttl)}
	return value, true
}

// Room implements [session.Store]: the lab's sessions always find room.
func (s *store) Room(string, string, []byte) bool { return true }

// Keep implements [session.Store].
func (s *store) Keep(ns, key string, value []byte, ttl time.Duration) ([]byte, bool) {
	return s.SetIfAbsent(ns, key, value, ttl)
}

// Replace implements [session.Store].
func (s *store) Replace(ns, key string, old, new []byte, ttl time.Duration) bool {
	now, _, ok, _ := s.Find(ns, key)
	if !ok || !bytes.Equal(now, old) {
		return false
	}
	s.values[[2]string{ns, key}] = stored{value: bytes.Clone(new), expires: s.now().Add(ttl)}
	return true
}

// CompareAndSwap implements [session.Store].
func (s *store) CompareAndSwap(ns, key string, old, new []byte, ttl time.Duration) bool {
	return s.Replace(ns, key, old, new, ttl)
}

// Touch implements [session.Store].
func (s *store) Touch(ns, key string, ttl time.Duration) bool {
	e, ok := s.values[[2]string{ns, key}]
	if ok {
		e.expires = s.now().Add(ttl)
		s.values[[2]string{ns, key}] = e
	}
	return ok
}

// Drop implements [session.Store].
func (s *store) Drop(ns, key string, value []byte) {
	if now, _, ok, _ := s.Find(ns, key); ok && bytes.Equal(now, value) {
		delete(s.values, [2]string{ns, key})
	}
}

// Lost implements [session.Store].
func (s *store) Lost() bool { return false }

// Settle implements [session.Store].
func (s *store) Settle(string, string) {}

// Each implements [session.Store].
func (s *store) Each(ns string, f func(key string, value []byte, expires time.Time) bool) {
	for k, e := range s.values {
		if k[0] == ns && e.expires.After(s.now()) && !f(k[1], e.value, e.expires) {
			return
		}
	}
}

var _ session.Store = (*store)(nil)
