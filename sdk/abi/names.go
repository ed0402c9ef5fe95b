package abi

import "math"

// Type is a core wasm value type by its binary code.
type Type byte

// The value types that the contract uses.
const (
	I32 Type = 0x7f
	I64 Type = 0x7e
	F64 Type = 0x7c
)

// Func is one function of the contract.
type Func struct {
	Name     string
	Params   []Type
	Results  []Type
	Optional bool   // an export that a module may leave out
	Minor    int    // the minor version that brought it
	Want     uint32 // the bit of wp_wants that asks for an export to be called; 0 = needs none
}

// Module is the import module's name.
const Module = "warmpath_v1"

// Memory is the name under which a module exports its memory.
const Memory = "memory"

// Marker is exported by a module of this minor version: a function () -> () that is never called. Layouts has those of
// others.
const Marker = "warmpath_abi_1_3"

// Exports lists the functions that a module exports. Those of a later minor version than a module's own are not looked
// at.
//
//	wp_frame(max_workers) -> address    asked at start, and again when the fleet outgrows max_workers
//	wp_configure(len) -> errno          options of len bytes stand at the frame's address, see AppendOption; 0 = accepted
//	wp_pick() -> decision               reads the frame; see Pack
//	wp_maint()                          called between picks every 256 calls: let the guest's runtime collect garbage
//
// Since 1.1:
//
//	wp_wants() -> bits                  asked once, after wp_configure: Want* bits. Without it: all calls exported
//	wp_reasons() -> len                 asked once, after wp_configure: names of reason codes stand at the frame's
//	                                    address as pairs, see AppendOption; the key is the code in decimal.
//	                                    At most MaxReasons
//	wp_tick(now)                        about once a second, Unix nanoseconds
//	wp_on_first_token(n)                n Outcomes stand at the frame's address: their first bytes came
//	wp_on_complete(n)                   n Outcomes: they ended
//	wp_on_kv_event(n)                   n KVEvents of workers of the pool
//
// Since 1.2:
//
//	wp_classify() -> class              reads the header alone of a request that is about to wait in the pool's queue,
//	                                    with a pick's fuel and time; see PackClass. The greater class goes first
//	wp_filter() -> decision             reads the frame of all workers that are up, and writes the rows that the
//	                                    request may use to the order area; see Pack: their number stands in place of a
//	                                    row, 0 = none; Decline leaves all; Reject turns the client away
//
// Since 1.3:
//
//	wp_plan(n)                          n Talks stand at the frame's address: conversations whose worker leaves, or to
//	                                    move to one that has come. The guest may write their Values. They are Returns
//	                                    at first, or 0 for one that had better have its next turn before
//
// wp_tick, the three of 1.1 behind it and wp_plan run off the request path. Each call reaches one instance of the
// module, whichever is idle, so that each outcome reaches the module once and kv_incr counts it once: what all
// instances must know belongs into own or kv. A call has the fuel and the time of a pick. What comes faster than the
// module takes it is dropped, and counted.
var Exports = []Func{
	{Name: Marker},
	{Name: "wp_frame", Params: []Type{I32}, Results: []Type{I32}},
	{Name: "wp_pick", Results: []Type{I64}},
	{Name: "wp_configure", Params: []Type{I32}, Results: []Type{I32}, Optional: true},
	{Name: "wp_maint", Optional: true},
	{Name: "_initialize", Optional: true},
	{Name: "wp_wants", Results: []Type{I32}, Optional: true, Minor: 1},
	{Name: "wp_reasons", Results: []Type{I32}, Optional: true, Minor: 1},
	{Name: "wp_tick", Params: []Type{I64}, Optional: true, Minor: 1, Want: WantTick},
	{Name: "wp_on_first_token", Params: []Type{I32}, Optional: true, Minor: 1, Want: WantFirstToken},
	{Name: "wp_on_complete", Params: []Type{I32}, Optional: true, Minor: 1, Want: WantComplete},
	{Name: "wp_on_kv_event", Params: []Type{I32}, Optional: true, Minor: 1, Want: WantKVEvents},
	{Name: "wp_classify", Results: []Type{I64}, Optional: true, Minor: 2, Want: WantClassify},
	{Name: "wp_filter", Results: []Type{I64}, Optional: true, Minor: 2, Want: WantFilter},
	{Name: "wp_plan", Params: []Type{I32}, Optional: true, Minor: 3, Want: WantPlan},
}

// Bits of wp_wants: what costs the host something and is therefore done only for modules that ask.
const (
	WantCost       uint32 = 1 << iota // fill Row.Cost
	WantTick                          // call wp_tick
	WantFirstToken                    // call wp_on_first_token
	WantComplete                      // call wp_on_complete
	WantKVEvents                      // call wp_on_kv_event
	WantHeld                          // fill GPU, L1 and L2 by what the workers report: needs the prompt's ids
	WantClassify                      // call wp_classify; since 1.2
	WantPair                          // add rows of prefillers, of which PairRow may name one; since 1.2
	WantFilter                        // call wp_filter; since 1.2
	WantCandidates                    // rows of candidates suffice where many workers can take the request; since 1.2
	WantPlan                          // call wp_plan; since 1.3
	WantSessions                      // with WantCandidates: all rows for a session that has no worker yet; since 1.3

	// WantAll are the bits that this version knows. A module that sets another is refused.
	WantAll = WantSessions<<1 - 1
)

// WantRows are the bits that change what a frame has.
const WantRows = WantCost | WantHeld | WantPair | WantCandidates | WantSessions

// WantNotices are the bits of the calls off the request path.
const WantNotices = WantTick | WantFirstToken | WantComplete | WantKVEvents

// MaxReasons bounds the reasons that wp_reasons names. A name has at most MaxText bytes.
const MaxReasons = 256

// Imports lists every function of Module. (ptr, cap) names a buffer of the guest; the answer is the length needed, and
// the buffer is filled only if cap suffices. A negative answer is an Errno. None of them can stop the host. kv_* are of
// a store in memory, shared by the instances, sent to other routers behind; ErrLimit beyond 10,000 keys or 8 MiB a
// strategy.
//
//	str(kind, index, ptr, cap) -> needed       Str* kinds; the kind decides what index is
//	prefix_match(row) -> blocks                leading blocks of the prompt on that row's worker, all tiers
//	prefix_hash(block) -> hash                 chained hash of prompt block 0..PromptBlocks-1; 0 = out of range
//	kv_get(kptr, klen, ptr, cap) -> needed     the module's own namespace; ErrNotFound
//	kv_cas(kptr, klen, optr, olen, nptr, nlen, ttl_ms) -> errno   olen 0 = must be absent; ErrConflict
//	kv_incr(kptr, klen, delta, ttl_ms) -> value   i64 counter; math.MinInt64 on error
//	log(level, ptr, len)                       Level*; rate-limited
//	log_level() -> level                       lines below it are dropped
//	metric(ptr, len, value_bits)               adds f64 value to the module's counter of that name
//	error(ptr, len)                            text for the operator about the call that is about to fail
//
// Since 1.1. Who knows nothing of prefixes or tiers answers ErrNotFound, or 0 tiers:
//
//	prefix_best(ptr, cap) -> needed            a Holder: who holds the most of the prompt, of all workers of the pool,
//	                                           those that are no candidates too
//	prefix_worker(row, ptr, cap) -> needed     a Holder: that row's worker, by the host's own history
//	prefix_match_key(row, ptr, n) -> blocks    leading blocks of another chain of n hashes, as prefix_hash gave them,
//	                                           that the row's worker holds; n at most MaxChain
//	cache_tiers(row, ptr, cap) -> needed       a Tier for each tier that the row's worker has, GPU first
//
// Since 1.2:
//
//	own(key, value) -> errno                   sets Row.Own of the worker of that Row.Key, for all instances; ErrInvalid
//	                                           for NaN and infinities, ErrNotFound for no worker that a row has shown
//	own_of(key) -> value                       that number; 0 also for no such worker
//	kv_get_many(kptr, klen, ptr, cap) -> needed   the values of up to MaxMany keys, each key a u32 length and its bytes;
//	                                           for each an i32 length and the bytes, or an Errno alone
//	zone_offset(ptr, len, now) -> seconds      east of UTC at that time (Unix nanoseconds), in the time zone of that
//	                                           name, as Europe/Berlin; NoZone if there is none
//
// Since 1.3, in wp_pick:
//
//	cache(what, row, amount, ptr, len) -> errno   asks for something to be done with the KV cache of the request's
//	                                           conversation once it has been answered: Cache* kinds, which say what the
//	                                           others are; ErrNotFound for no such row, ErrLimit beyond MaxWishes
var Imports = []Func{
	{Name: "str", Params: []Type{I32, I32, I32, I32}, Results: []Type{I32}},
	{Name: "prefix_match", Params: []Type{I32}, Results: []Type{I32}},
	{Name: "prefix_hash", Params: []Type{I32}, Results: []Type{I64}},
	{Name: "kv_get", Params: []Type{I32, I32, I32, I32}, Results: []Type{I32}},
	{Name: "kv_cas", Params: []Type{I32, I32, I32, I32, I32, I32, I32}, Results: []Type{I32}},
	{Name: "kv_incr", Params: []Type{I32, I32, I64, I32}, Results: []Type{I64}},
	{Name: "log", Params: []Type{I32, I32, I32}},
	{Name: "log_level", Results: []Type{I32}},
	{Name: "metric", Params: []Type{I32, I32, I64}},
	{Name: "error", Params: []Type{I32, I32}},
	{Name: "prefix_best", Params: []Type{I32, I32}, Results: []Type{I32}, Minor: 1},
	{Name: "prefix_worker", Params: []Type{I32, I32, I32}, Results: []Type{I32}, Minor: 1},
	{Name: "prefix_match_key", Params: []Type{I32, I32, I32}, Results: []Type{I32}, Minor: 1},
	{Name: "cache_tiers", Params: []Type{I32, I32, I32}, Results: []Type{I32}, Minor: 1},
	{Name: "own", Params: []Type{I64, F64}, Results: []Type{I32}, Minor: 2},
	{Name: "own_of", Params: []Type{I64}, Results: []Type{F64}, Minor: 2},
	{Name: "kv_get_many", Params: []Type{I32, I32, I32, I32}, Results: []Type{I32}, Minor: 2},
	{Name: "zone_offset", Params: []Type{I32, I32, I64}, Results: []Type{I32}, Minor: 2},
	{Name: "cache", Params: []Type{I32, I32, I32, I32, I32}, Results: []Type{I32}, Minor: 3},
}

// Kinds of cache.
const (
	CacheKeep     int32 = iota // keep the prompt where it is for amount milliseconds
	CacheDrop                  // the session of that name, or the request's own if len is 0, has ended
	CachePrefetch              // have the row's worker hold the prompt amount milliseconds after the answer
	CacheCopy                  // have the row's worker hold the first amount blocks of the prompt, too
)

// MaxWishes bounds the calls of cache in one pick.
const MaxWishes = 8

// MaxMany bounds the keys of one kv_get_many.
const MaxMany = 4096

// NoZone is zone_offset's answer to a name of no time zone.
const NoZone int32 = math.MinInt32

// MaxChain bounds the hashes that prefix_match_key takes: 2 MiB of text.
const MaxChain = 16384

// Errno values, as negative results of imports.
const (
	ErrNotFound  int32 = -1 // no such key, row or string
	ErrConflict  int32 = -2 // the value is not the one expected
	ErrInvalid   int32 = -3 // a pointer, length or kind is out of range
	ErrForbidden int32 = -4 // the configuration of the strategy does not allow it; see allow
	ErrLimit     int32 = -5 // the module's quota is used up
)

// Kinds of str.
const (
	StrSession int32 = iota // the session key
	StrModel                // the model's name
	StrWorker               // the worker id of row index
	StrTenant               // the cache salt
	StrCaller               // the caller's name; since 1.1
	StrLabel                // the label of bit index, as tier=batch; since 1.1
	StrHeader               // a header of the request, whose name of index bytes stands at ptr; since 1.1
)

// Levels of log.
const (
	LevelDebug int32 = iota
	LevelInfo
	LevelWarn
	LevelError
)
