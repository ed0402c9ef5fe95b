// Package tier keeps small values with a TTL: session bindings, and the key/value pairs of strategies. They live in
// memory (L1), bounded in bytes, and if configured in a Redis (L2) too, so that they outlive a restart and routers
// share them.
//
// # What a caller may rely on
//
// No call fails because of Redis, and none waits longer for it than Config.Timeout, 5 ms, in all: one deadline covers
// the wait for a connection, the dial and every round trip; nothing is retried. Five failures in a row, with no success
// for 150 ms, open the breaker, with or without traffic (Run probes ten times a second), and L1 alone serves. A value
// expires to the millisecond in L1 and, by PX, in Redis. Both count a life down, so a wall clock that is set moves no
// end. Settle alone waits longer, half a second at most, and is for who opens something.
//
// # What Redis is owed
//
// Every entry of L1 has a debt (debt.go). The healer pays it before the breaker closes, and at every pulse. Tombstones
// are the entries of a deletion; L1 keeps one only until Redis has it.
//
//	change here, Redis silent             from paid, touch   from replace  from set   from drop  from delete
//	  Touch                               touch              replace       set        -          -
//	  SetIfAbsent, Keep, Replace, Local   replace            replace       set        replace    set
//	  Set, CompareAndSwap, Add            set                set           set        set        set
//	  Drop                                drop               drop          delete     drop       delete
//	  Delete                              delete             delete        delete     delete     delete
//	change here, Redis answers            paid; a tombstone goes
//	what Redis answers to the debt
//	  it took it, or has the same         paid; a tombstone goes; touch if the life was changed meanwhile
//	  it has another value                its value, paid     it has a tombstone: the entry goes
//	  nothing, or "I have forgotten"      as it was
//	  but the value was changed meanwhile as it was, on the base that Redis is now known to have
//
// A debt of replace or drop gives way: it carries its base, what Redis had when it last answered (nothing, maybe), and
// if Redis has something else by then, that stands. Set and delete hold whatever Redis has. TestDebts,
// TestAnswersToChanges and yield_test.go walk this table.
//
// # What if Redis is silent, or has forgotten?
//
// L1 answers for what it holds, and nobody knows of the rest: Find returns ErrSilent, which is never "there is none".
// That is believed only of a Redis that can know. For two seconds after it was silent it is doubted, since other
// routers may not have given it yet what they did; a mark in it shows that it was flushed or came back empty, and then
// every router puts back what it holds before Redis is believed again (epoch.go). What this does not mend: a router
// that alone has lost its Redis keeps from the others what it has opened meanwhile, and counters may lose what others
// counted. Values that Redis evicts by itself are put back only by a router that uses them: set maxmemory-policy
// noeviction.
//
// # How old may an answer of L1 be?
//
// One second, while Redis is there. After that the next Get asks Redis, one Get of many at once. So a session closed on
// one router is unknown to the others within a second, at one round trip a second for each session in use; Touch,
// SetIfAbsent, CompareAndSwap and Add ask Redis each time. What lost: keyspace events (the server must be configured
// for them, and they get lost with a connection), and go-redis's client-side cache (experimental by its own words, no
// bound on staleness but an age either). Operations on one key at the same moment on one router have no order; Redis's
// is taken over within that second.
//
// # Why tombstones, one lock, go-redis?
//
// A value that Redis does not have may have been deleted by another router, or lost by a flush, a restart or a
// failover. The first must not be served, the second must not end a session. So a deletion leaves one byte in Redis for
// as long as the value would have lived, and what is simply not there is put back by the router that still holds it.
//
// Bounds by bytes, by namespace and by LRU are exact under one lock and guesses under sixteen, which BenchmarkMemory
// finds no faster on two cores. A namespace may hold half of the bytes; when all is full the largest one gives way.
// Expiry is a heap in which a touch moves nothing; the sweep corrects it.
//
// github.com/redis/go-redis/v9 is Redis's own client, BSD-2-Clause, with the same calls for sentinel and cluster. It
// obeys a context's deadline, except in its TLS dial, which is ours. Its own log lines are switched off once a Redis is
// configured; guard.go bounds what it allocates. Neither a line nor an error has the password.
//
// # How the files lie
//
// tier, ops and yield are the Store; operation is one call of it, local the view that never waits. They work on tiers:
// memory (memory, answers and walk, over lru, entry, expiry and debt) and redis (redis and batch, over scripts, keys,
// guard and epoch). healer alone moves what is owed from one to the other.
package tier
