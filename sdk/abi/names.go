package abi

// Type is a core wasm value type by its binary code.
type Type byte

// The value types that the contract uses.
const (
	I32 Type = 0x7f
	I64 Type = 0x7e
)

// Func is one function of the contract.
type Func struct {
	Name     string
	Params   []Type
	Results  []Type
	Optional bool // an export that a module may leave out
}

// Module is the import module's name.
const Module = "warmpath_v1"

// Memory is the name under which a module exports its memory.
const Memory = "memory"

// Marker is exported by every module of this major version: a function () -> () that is never called.
const Marker = "warmpath_abi_1_0"

// Exports lists what a module exports beside Memory.
//
//	wp_frame(max_workers) -> address    asked at start, and again when the fleet outgrows max_workers
//	wp_configure(len) -> errno          options of len bytes stand at the frame's address, see Options; 0 = accepted
//	wp_pick() -> decision               reads the frame; see Pack
//	wp_maint()                          called between picks every 256 calls: let the guest's runtime collect garbage
var Exports = []Func{
	{Name: Marker},
	{Name: "wp_frame", Params: []Type{I32}, Results: []Type{I32}},
	{Name: "wp_pick", Results: []Type{I64}},
	{Name: "wp_configure", Params: []Type{I32}, Results: []Type{I32}, Optional: true},
	{Name: "wp_maint", Optional: true},
	{Name: "_initialize", Optional: true},
}

// Imports lists every function of Module. (ptr, cap) names a buffer of the guest; the answer is the length needed, and
// the buffer is filled only if cap suffices. A negative answer is an Errno. None of them can stop the host.
//
//	str(kind, index, ptr, cap) -> needed       Str* kinds; index is a row for StrWorker, else 0
//	prefix_match(row) -> blocks                leading blocks of the prompt on that row's worker, all tiers
//	prefix_hash(block) -> hash                 chained hash of prompt block 0..PromptBlocks-1; 0 = out of range
//	                                           kv_*: a store in memory, shared by the instances, told to other routers behind;
//	                                           ErrLimit beyond 10,000 keys or 8 MiB a strategy
//	kv_get(kptr, klen, ptr, cap) -> needed     the module's own namespace; ErrNotFound
//	kv_cas(kptr, klen, optr, olen, nptr, nlen, ttl_ms) -> errno   olen 0 = must be absent; ErrConflict
//	kv_incr(kptr, klen, delta, ttl_ms) -> value   i64 counter; math.MinInt64 on error
//	log(level, ptr, len)                       Level*; rate-limited
//	log_level() -> level                       lines below it are dropped
//	metric(ptr, len, value_bits)               adds f64 value to the module's counter of that name
//	error(ptr, len)                            text for the operator about the call that is about to fail
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
}

// Errno values, as negative results of imports.
const (
	ErrNotFound  int32 = -1 // no such key, row or string
	ErrConflict  int32 = -2 // the value is not the one expected
	ErrInvalid   int32 = -3 // a pointer, length or kind is out of range
	ErrForbidden int32 = -4 // the module's TOML table does not allow it; see allow
	ErrLimit     int32 = -5 // the module's quota is used up
)

// Kinds of str.
const (
	StrSession int32 = iota // the session key
	StrModel                // the model's name
	StrWorker               // the worker id of a row
	StrTenant               // the cache salt
)

// Levels of log.
const (
	LevelDebug int32 = iota
	LevelInfo
	LevelWarn
	LevelError
)
