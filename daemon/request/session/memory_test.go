package session

import (
	"bytes"
	"errors"
	"sync"
	"time"
)

// memory is a Store without bounds that counts what is asked of it.
type memory struct {
	mu     sync.Mutex // guards all below
	values map[[2]string]stored
	writes int
	silent bool     // it does not know of what it does not hold
	calls  []string // of Settle, and of methods that differ in what a change does after a silence
}

type stored struct {
	value   []byte
	expires time.Time
}

var _ Store = (*memory)(nil)

func newMemory() *memory { return &memory{values: map[[2]string]stored{}} }

// live is the value that stands there. The caller holds mu.
func (m *memory) live(ns, key string) ([]byte, bool) {
	s, ok := m.values[[2]string{ns, key}]
	if !ok || !time.Now().Before(s.expires) {
		return nil, false
	}
	return s.value, true
}

func (m *memory) put(ns, key string, value []byte, ttl time.Duration) {
	m.writes++
	m.values[[2]string{ns, key}] = stored{bytes.Clone(value), time.Now().Add(ttl)}
}

func (m *memory) Find(ns, key string) ([]byte, time.Duration, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.live(ns, key)
	if !ok && m.silent {
		return nil, 0, false, errors.New("silent")
	}
	return v, time.Until(m.values[[2]string{ns, key}].expires), ok, nil
}

func (m *memory) Lost() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.silent
}

func (m *memory) Set(ns, key string, value []byte, ttl time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(ns, key, value, ttl)
}

func (m *memory) SetIfAbsent(ns, key string, value []byte, ttl time.Duration) ([]byte, bool) {
	return m.absent("SetIfAbsent", ns, key, value, ttl)
}

func (m *memory) Room(string, string, []byte) bool { return true }

func (m *memory) Keep(ns, key string, value []byte, ttl time.Duration) ([]byte, bool) {
	return m.absent("Keep", ns, key, value, ttl)
}

func (m *memory) absent(how, ns, key string, value []byte, ttl time.Duration) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, how)
	if v, ok := m.live(ns, key); ok {
		return v, false
	}
	m.put(ns, key, value, ttl)
	return value, true
}

func (m *memory) CompareAndSwap(ns, key string, old, new []byte, ttl time.Duration) bool {
	return m.swap("CompareAndSwap", ns, key, old, new, ttl)
}

func (m *memory) Replace(ns, key string, old, new []byte, ttl time.Duration) bool {
	return m.swap("Replace", ns, key, old, new, ttl)
}

func (m *memory) swap(how, ns, key string, old, new []byte, ttl time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, how)
	if v, ok := m.live(ns, key); !ok || !bytes.Equal(v, old) {
		return false
	}
	m.put(ns, key, new, ttl)
	return true
}

func (m *memory) Settle(string, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, "Settle")
}

func (m *memory) Touch(ns, key string, ttl time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.live(ns, key)
	if ok {
		m.put(ns, key, v, ttl)
	}
	return ok
}

func (m *memory) Drop(ns, key string, value []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.live(ns, key); ok && bytes.Equal(v, value) {
		delete(m.values, [2]string{ns, key})
	}
}

func (m *memory) Each(ns string, f func(string, []byte, time.Time) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k := range m.values {
		if v, ok := m.live(k[0], k[1]); ok && k[0] == ns && !f(k[1], v, m.values[k].expires) {
			return
		}
	}
}
