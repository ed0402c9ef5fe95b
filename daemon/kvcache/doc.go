// Package kvcache runs the workers' KV cache as it is configured: one kvstore.Store, and the doors at which LMCache
// reaches it. Without a door there is nothing of it, and no memory is taken.
//
// [Cache.Holds] is the size of the tier in tokens, for the strategies: bytes of room over the bytes of a token that the
// puts show. Package chunks says what of that is known and what is guessed.
//
// What no tier has any more is told to [Beliefs], so that strategies do not count on it: see teller. What a Redis or
// another member of a pool has lost is found out by a question, a thousand keys of the catalogue of L2 a second. So it
// is told some seconds later, minutes where there are hundreds of thousands of keys. Not told is what only others have
// put there and nobody has read here: the catalogue does not have it.
//
// A process that takes another's place in an upgrade has folder and segment once that one has closed: see succession.
// What lost: the cache given up before the new process is started, which one that fails would have cost; and a memory
// that answers misses meanwhile: clients would hold what the disk has for lost, and there would be memory for two.
//
// The doors close before the store, so that nobody reads memory that is given back.
package kvcache
