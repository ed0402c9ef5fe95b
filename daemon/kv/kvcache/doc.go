// Package kvcache runs the workers' KV cache as configured: one kvstore.Store, and the listeners at which LMCache
// reaches it. If no listener is configured, there is no cache, and the process takes no memory for it.
//
// [Cache.Holds] is the size of the tier in tokens, for the strategies: its bytes divided by the bytes of a token in the
// puts. Package chunks lists what of that is known and what is guessed.
//
// When a value is in no tier any more, lossReporter reports it to [Beliefs], so that strategies do not count on it. A
// loss in a Redis or at another member of a pool shows only by a query, for a thousand keys of L2's catalogue a second.
// So it is reported some seconds later, or minutes later with hundreds of thousands of keys. A loss of a value that
// others put there and no client has read here is not reported: it is not in the catalogue.
//
// During an upgrade, the new process takes the folder and the segment once the old one has closed them: see succession.
// What lost: to close the cache before the new process starts, which loses the cache if the start fails; and a memory
// that returns misses meanwhile: clients would take values on the disk for lost, and there would be memory for two.
//
// The listeners close before the store, so that no client reads freed memory.
package kvcache
