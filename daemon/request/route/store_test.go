package route

import (
	"bytes"
	"errors"
	"time"

	"github.com/warmpath/warmpath/daemon/request/session"
)

// store is a store of sessions in memory. While it is silent it knows of what it holds alone.
type store struct {
	values map[[2]string][]byte
	silent bool
	writes int
	kept   int           // by Keep
	left   time.Duration // of every value's life
}

func newStore() *store { return &store{values: map[[2]string][]byte{}, left: 20 * time.Minute} }

var errSilent = errors.New("silent")

func (s *store) Find(ns, key string) ([]byte, time.Duration, bool, error) {
	v, ok := s.values[[2]string{ns, key}]
	if !ok && s.silent {
		return nil, 0, false, errSilent
	}
	return v, s.left, ok, nil
}

func (s *store) SetIfAbsent(ns, key string, value []byte, _ time.Duration) ([]byte, bool) {
	if v, ok := s.values[[2]string{ns, key}]; ok {
		return v, false
	}
	s.writes++
	s.values[[2]string{ns, key}] = value
	return value, true
}

func (s *store) Room(string, string, []byte) bool { return true }

func (s *store) Keep(ns, key string, value []byte, ttl time.Duration) ([]byte, bool) {
	s.kept++
	return s.SetIfAbsent(ns, key, value, ttl)
}

func (s *store) Replace(ns, key string, old, new []byte, _ time.Duration) bool {
	if !bytes.Equal(s.values[[2]string{ns, key}], old) {
		return false
	}
	s.writes++
	s.values[[2]string{ns, key}] = new
	return true
}

func (s *store) CompareAndSwap(ns, key string, old, new []byte, ttl time.Duration) bool {
	return s.Replace(ns, key, old, new, ttl)
}

func (s *store) Touch(string, string, time.Duration) bool {
	s.writes++
	return true
}

func (s *store) Drop(ns, key string, _ []byte) {
	s.writes++
	delete(s.values, [2]string{ns, key})
}

func (s *store) Lost() bool            { return s.silent }
func (s *store) Settle(string, string) {}

func (s *store) Each(ns string, f func(string, []byte, time.Time) bool) {
	for k, v := range s.values {
		if k[0] == ns && !f(k[1], v, time.Time{}) {
			return
		}
	}
}

var _ session.Store = (*store)(nil)
