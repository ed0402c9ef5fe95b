package recent

// Map keeps so many keys that were written last, and up to twice as many. Whoever uses it from several goroutines has
// a lock for it.
type Map[K comparable, V any] struct {
	most  int
	newer map[K]V
	older map[K]V // newer before it was full
}

// New makes an empty map.
func New[K comparable, V any](most int) *Map[K, V] { return &Map[K, V]{most: most, newer: map[K]V{}} }

// Get returns a key's value. A key that is read and not written again is forgotten like any other.
func (m *Map[K, V]) Get(key K) (V, bool) {
	v, ok := m.newer[key]
	if !ok {
		v, ok = m.older[key]
	}
	return v, ok
}

// Put writes a key's value.
func (m *Map[K, V]) Put(key K, v V) {
	if _, ok := m.newer[key]; !ok && len(m.newer) >= m.most {
		m.older, m.newer = m.newer, map[K]V{}
	}
	m.newer[key] = v
}

// Delete forgets a key, and reports whether the map had it.
func (m *Map[K, V]) Delete(key K) bool {
	_, ok := m.Get(key)
	delete(m.newer, key)
	delete(m.older, key)
	return ok
}

// Len returns how many values the map holds. One that was written again after its half was full counts twice.
func (m *Map[K, V]) Len() int { return len(m.newer) + len(m.older) }
