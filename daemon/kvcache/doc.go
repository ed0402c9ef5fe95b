// Package kvcache runs the workers' KV cache as it is configured: one kvstore.Store, and the doors at which LMCache
// reaches it. Without a door there is nothing of it, and no memory is taken.
//
// [Cache.Holds] is the size of the tier in tokens, for the strategies: bytes of room over the bytes of a token that the
// puts show. Package chunks says what of that is known and what is guessed.
//
// What no tier has any more is told to [Beliefs], so that strategies do not count on it: see teller. Not told is what
// another daemon of a pool loses, what a Redis evicts until a look-up misses it there, and what the disk keeps beyond a
// value's end.
//
// A process that takes another's place in an upgrade has folder and segment once that one has closed: see succession.
// What lost: the cache given up before the new process is started, which one that fails would have cost; and a memory
// that answers misses meanwhile: clients would hold what the disk has for lost, and there would be memory for two.
//
// The doors close before the store, so that nobody reads memory that is given back.
package kvcache
