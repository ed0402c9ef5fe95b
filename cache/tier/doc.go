// Package tier keeps small values with a TTL: session bindings, and the key/value pairs of strategies. They live in
// memory (L1), bounded in bytes, and if configured in a Redis (L2) too, so that they outlive a restart and routers
// share them.
//
// # What a caller may rely on
//
// No call fails because of Redis, and none waits longer for it than Config.Timeout, 5 ms, in all: one deadline covers
// the wait for a connection, the dial and every round trip; nothing is retried. Five failures in a row, with no success
// for 150 ms, open the breaker, with or without traffic (Run probes ten times a second), and L1 alone serves. A value
// expires to the millisecond in L1 and, by PX, in Redis. Both count the remaining time down, so that setting the wall
// clock changes no expiry. Only Settle waits longer, half a second at most: for callers that open something.
//
// # What if Redis is silent, or has forgotten?
//
// L1 answers for what it holds. It knows nothing of other keys: Find returns ErrSilent for them, which never means
// "there is none". A Redis that was flushed or came back empty gets back what every router holds before it is believed
// again (epoch.go). Set maxmemory-policy noeviction: values that Redis evicts by itself are put back only by a router
// that uses them.
//
// # Why
//
// why.md has why deletions leave tombstones, why there is one lock, why go-redis, and what lost.
package tier
