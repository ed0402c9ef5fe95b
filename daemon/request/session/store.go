package session

import "time"

// Store keeps the bindings: small values under a namespace and a key, each for a time. cache/tier is one, in memory
// and, if wanted, in a Redis that several routers share. None of its methods blocks for long. While its second tier is
// silent, a store goes on with what it has in memory. It returns an error if the second tier may have more: that error
// never means "there is none". All of them are safe for concurrent use.
type Store interface {
	// Find returns a live value and the rest of its life time, or ok = false. An error: the store is silent, and this
	// process does not hold the key; there may be a value. The caller does not change it.
	Find(ns, key string) (value []byte, life time.Duration, ok bool, err error)
	// SetIfAbsent writes a value for a key without one, and returns the key's value afterwards. While the store is
	// silent it does so here alone, and gives way to what the store has when it answers again.
	SetIfAbsent(ns, key string, value []byte, ttl time.Duration) (now []byte, set bool)
	// Room reports whether the share of a new value's owner has room for it.
	Room(ns, key string, value []byte) bool
	// Keep is SetIfAbsent here alone, for a caller whose Find found the store silent.
	Keep(ns, key string, value []byte, ttl time.Duration) (now []byte, set bool)
	// Replace replaces old by new, and reports whether the value was old. What it writes while the store is silent gives
	// way to what the store has when it answers again, unless that is old.
	Replace(ns, key string, old, new []byte, ttl time.Duration) bool
	// CompareAndSwap is Replace, but what it writes while the store is silent is written to it later, whatever it has
	// then.
	CompareAndSwap(ns, key string, old, new []byte, ttl time.Duration) bool
	// Touch sets a value's time to live, and reports whether the value existed.
	Touch(ns, key string, ttl time.Duration) bool
	// Drop deletes a value, if it is the one given.
	Drop(ns, key string, value []byte)
	// Lost reports whether the store is known to be silent. Then this process alone decides.
	Lost() bool
	// Settle waits a short time until the store has a change of a key that it was too silent to take.
	Settle(ns, key string)
	// Each calls f for the values that this process holds until f returns false. f calls no method of the store.
	Each(ns string, f func(key string, value []byte, expires time.Time) bool)
}
