// Package tier keeps small values with a TTL: session bindings, and the key/value pairs of strategies. They live in memory
// (L1), bounded in bytes, and if configured in a Redis (L2) too, so that they outlive a restart and are shared by routers.
//
// # What a caller may rely on
//
// No call fails because of Redis, and none waits longer for it than Config.Timeout, 5 ms, in all: one deadline covers the
// wait for a connection, the dial and every round trip; nothing is retried. Five failures in a row, with no success for 150
// ms, open the breaker, with or without traffic (Run probes ten times a second), and L1 alone serves. What Redis missed is told
// to it before the breaker closes: values, longer lives, deletions. A value expires to the millisecond in L1 and, by PX, in
// Redis. Settle alone waits longer, half a second at most, and is for who opens something.
//
// # What if Redis is silent?
//
// Then L1 answers for what it holds, and nobody knows of the rest: Find says ErrSilent, which is never "there is none". What
// SetIfAbsent, Keep and Replace enter in a silence gives way: with it Redis is told what it is taken to have (nothing, or what was
// heard from it last), and if it has something else, that stands and L1 takes it over. Set, CompareAndSwap, Add and Delete
// are told whatever Redis has by then. Each test of yield_test.go is one way for such a change to meet the older value.
//
// "There is none" is believed only of a Redis that can know. For two seconds after it was silent it is doubted, since other
// routers may not have told it yet what they did; a mark in it shows that it was flushed or came back empty, and then every
// router puts back what it holds before Redis is believed again (forgot.go, forgot_test.go). What this does not mend: a
// router that alone has lost its Redis tells no other what it has opened meanwhile; values that Redis evicts by itself, one by
// one, are put back only by a router that uses them (set maxmemory-policy noeviction).
//
// # How old may an answer of L1 be?
//
// One second, while Redis is there. After that the next Get asks Redis, one Get of many at once. So a session closed on one
// router is unknown to the others within a second, at one round trip a second for each session in use; Touch, SetIfAbsent,
// CompareAndSwap and Add ask Redis each time. What lost: keyspace events (the server must be configured for them, and they
// get lost with a connection), and go-redis's client-side cache (experimental by its own words, no bound on staleness but an
// age either, RESP3 only). Operations on one key at the same moment on one router have no order; Redis's is taken over
// within that second.
//
// # Why tombstones?
//
// A value that Redis does not have may have been deleted by another router, or lost: by a flush, a restart without its file,
// a failover, its own eviction. The first must not be served, the second must not end a session. So a deletion leaves one
// byte in Redis for as long as the value would have lived, and what is simply not there is put back by the router that still
// holds it, at its next use or, if all is lost, at its next pulse. In L1 a tombstone stands only until Redis was told.
//
// # Why one lock?
//
// Bounds by bytes, by namespace and by LRU are exact under one lock and guesses under sixteen. Measured on 2 cores with
// 10,000 sessions: a Get takes 225-275 ns alone and 300 ns on both cores at once; split into 16 stores it took 313 and 345.
// A request makes about three calls. A namespace may hold half of the bytes; when all is full the largest one gives way, so
// that a flood of one leaves the others alone. Expiry is a heap in which a touch moves nothing; the sweep corrects it.
//
// # Why go-redis?
//
// github.com/redis/go-redis/v9 is Redis's own client, BSD-2-Clause, and speaks to sentinel, cluster and a
// Ring of nodes with the same calls, which later tiers need. It obeys a context's deadline (ContextTimeoutEnabled), except
// in its TLS dial, which is ours. Its own log lines, one for every failed dial, are switched off; the breaker says once that
// Redis is lost and once that it is back. The password in the URL is in no line and in no error.
//
// # Figures
//
// 2 shared cores of a 2.8 GHz Xeon, redis-server 7.0.15 on a unix socket, values of 70 bytes, keys of 36:
//
//	L1     Get hit 0.2-0.3 us, miss 0.16 us, Touch 0.4 us: no allocation; Set 0.7 us, 1 allocation; Set that evicts 1.4 us
//	L2     Set 64 us (client alone 45), Get 128 us (client alone 70, a script of the same two reads 102), miss 79 us,
//	       Touch 125 us, Add 166 us
//	faults killed or stopped: open after 0.2 s under load, 0.6 s without; 5,911 calls around a stop of 2 s: p99 5.3 ms,
//	       longest 10 ms, 30 over 5 ms; closed within 0.1 s of its return
//
// # What it does not do yet
//
// Large values, sentinel and cluster (scripts work on a key and the mark, which may stand on two nodes). While Redis is lost,
// routers do not see each other's changes, and counters may lose what others counted. A Find that ran into the limit says
// ErrSilent for what only Redis has: a fresh store, asked for 10,000 values 20 at once without a pause, could not say for 6 to
// 20 of them, and for most of them 200 at once, since 200 trips of 0.1 ms on 2 cores do not end within 5 ms. Load fills L1 at
// the start and mends it for what stood there then; what other routers have bound since is asked for one by one.
package tier
