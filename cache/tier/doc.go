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
// # What Redis has still to get
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
// if Redis has something else by then, that wins. Set and delete win over whatever Redis has. TestDebts,
// TestAnswersToChanges and yield_test.go walk this table.
//
// # What if Redis is silent, or has forgotten?
//
// L1 answers for what it holds. Of everything else nothing is known: Find returns ErrSilent, which is never "there is
// none". A Redis that was flushed or came back empty gets back what every router holds before it is believed again
// (epoch.go). Set maxmemory-policy noeviction: values that Redis evicts by itself are put back only by a router that
// uses them.
//
// # How old may an answer of L1 be?
//
// One second, while Redis is there. After that the next Get asks Redis, one Get of many at once. So a session closed on
// one router is unknown to the others within a second, at one round trip a second for each session in use. Touch,
// SetIfAbsent, CompareAndSwap and Add ask Redis each time. Operations on one key at the same moment on one router have
// no order; Redis's is taken over within that second.
//
// # Which file has what
//
// tier, ops and yield are the Store; operation is one call of it, local the view that never waits. They work on tiers:
// memory (memory, answers and walk, over lru, entry, expiry and debt) and redis (redis and batch, over scripts, keys,
// guard and epoch). healer alone moves what is owed from one to the other.
//
// # Why
//
// why.md has why deletions leave tombstones, why there is one lock, why go-redis, and what lost.
package tier
