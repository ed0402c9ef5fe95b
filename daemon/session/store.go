package session

import "time"

// Store keeps the bindings: small values under a namespace and a key, each for a time. cache/tier is one, in memory and, if
// wanted, in a Redis that several routers share. Its methods neither fail nor block for long: a store that has lost its
// second tier goes on with what it has in memory. All of them are safe for concurrent use.
type Store interface {
	// Get returns a value that is live. The caller does not change it.
	Get(ns, key string) ([]byte, bool)
	// Set writes a value, whatever stood there.
	Set(ns, key string, value []byte, ttl time.Duration)
	// SetIfAbsent writes a value where none stands, and returns what stands there afterwards.
	SetIfAbsent(ns, key string, value []byte, ttl time.Duration) (now []byte, set bool)
	// CompareAndSwap replaces old by new, and tells whether old stood there.
	CompareAndSwap(ns, key string, old, new []byte, ttl time.Duration) bool
	// Touch gives a value another time to live from now on, and tells whether it was there.
	Touch(ns, key string, ttl time.Duration) bool
	// Delete forgets a value.
	Delete(ns, key string)
	// Each calls f for the values that this process holds until f returns false. f calls no method of the store.
	Each(ns string, f func(key string, value []byte, expires time.Time) bool)
}
