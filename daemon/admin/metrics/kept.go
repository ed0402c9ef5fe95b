package metrics

import (
	"maps"
	"sync"
)

// kept is a map with many reads and few writes. Its zero value is ready.
type kept[K comparable, V any] struct {
	mu sync.RWMutex // guards of
	of map[K]V
}

func (k *kept[K, V]) get(key K) (v V, ok bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	v, ok = k.of[key]
	return v, ok
}

func (k *kept[K, V]) put(key K, v V) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[K]V{}
	}
	k.of[key] = v
}

// getOrMake returns the value of the key. If the key has none, make creates it. making is held meanwhile.
func (k *kept[K, V]) getOrMake(making *sync.Mutex, key K, make func() V) V {
	if have, ok := k.get(key); ok {
		return have
	}
	making.Lock()
	defer making.Unlock()
	made := make()
	k.put(key, made)
	return made
}

// each calls f for every key.
func (k *kept[K, V]) each(f func(K)) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for key := range k.of {
		f(key)
	}
}

// removeIf removes the keys for which gone is true.
func (k *kept[K, V]) removeIf(gone func(K) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.of, func(key K, _ V) bool { return gone(key) })
}
