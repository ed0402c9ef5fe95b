package imports

import (
	"math"
	"unsafe"

	"github.com/warmpath/warmpath/sdk/abi"
)

// A string parameter crosses as address and length, so it stands for two of the contract's integers.

//go:wasmimport warmpath_v1 str
func str(kind, index int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport warmpath_v1 prefix_match
func prefixMatch(row int32) int32

//go:wasmimport warmpath_v1 prefix_hash
func prefixHash(block int32) uint64

//go:wasmimport warmpath_v1 prefix_best
func prefixBest(p unsafe.Pointer, n uint32) int32

//go:wasmimport warmpath_v1 prefix_worker
func prefixWorker(row int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport warmpath_v1 prefix_match_key
func prefixMatchKey(row int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport warmpath_v1 cache_tiers
func cacheTiers(row int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport warmpath_v1 kv_get
func kvGet(key string, p unsafe.Pointer, n uint32) int32

//go:wasmimport warmpath_v1 kv_get_many
func kvGetMany(keys unsafe.Pointer, size uint32, p unsafe.Pointer, n uint32) int32

//go:wasmimport warmpath_v1 own
func own(key uint64, value float64) int32

//go:wasmimport warmpath_v1 own_of
func ownOf(key uint64) float64

//go:wasmimport warmpath_v1 zone_offset
func zoneOffset(name string, now int64) int32

//go:wasmimport warmpath_v1 cache
func cache(what, row int32, amount uint32, session string) int32

//go:wasmimport warmpath_v1 kv_cas
func kvCAS(key, old, value string, ttl int32) int32

//go:wasmimport warmpath_v1 kv_incr
func kvIncr(key string, delta int64, ttl int32) int64

//go:wasmimport warmpath_v1 log
func log(level int32, text string)

//go:wasmimport warmpath_v1 log_level
func logLevel() int32

//go:wasmimport warmpath_v1 metric
func metric(name string, bits uint64)

//go:wasmimport warmpath_v1 error
func fail(text string)

// Str copies the text of a kind into b and returns its length, or an errno. If the kind is a header, b holds the
// header's name before the call.
func Str(kind, index int32, b []byte) int32 {
	return str(kind, index, unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
}

// PrefixMatch returns the leading blocks on a row's worker, or an errno.
func PrefixMatch(row int32) int32 { return prefixMatch(row) }

// PrefixHash returns the chained hash of a block of the prompt, 0 if there is none.
func PrefixHash(block int32) uint64 { return prefixHash(block) }

// PrefixBest fills h with the worker of the longest match and returns its size, or an errno.
func PrefixBest(h *abi.Holder) int32 { return prefixBest(unsafe.Pointer(h), abi.HolderSize) }

// PrefixWorker fills h with what is known of a row's worker and returns its size, or an errno.
func PrefixWorker(row int32, h *abi.Holder) int32 {
	return prefixWorker(row, unsafe.Pointer(h), abi.HolderSize)
}

// PrefixMatchKey returns the leading blocks of another chain on a row's worker, or an errno.
func PrefixMatchKey(row int32, hashes []uint64) int32 {
	return prefixMatchKey(row, unsafe.Pointer(unsafe.SliceData(hashes)), uint32(len(hashes)))
}

// CacheTiers fills tiers with those of a row's worker and returns the bytes they need, or an errno.
func CacheTiers(row int32, tiers []abi.Tier) int32 {
	return cacheTiers(row, unsafe.Pointer(unsafe.SliceData(tiers)), uint32(len(tiers)*abi.TierSize))
}

// KVGet copies a key's value into b and returns its length, or an errno.
func KVGet(key string, b []byte) int32 {
	return kvGet(key, unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
}

// KVGetMany copies the values of many keys into b, in the form of the contract, and returns their length, or an errno.
func KVGetMany(keys, b []byte) int32 {
	return kvGetMany(unsafe.Pointer(unsafe.SliceData(keys)), uint32(len(keys)), unsafe.Pointer(unsafe.SliceData(b)),
		uint32(len(b)))
}

// SetOwn sets the strategy's number for a worker, and returns 0 or an errno.
func SetOwn(key uint64, value float64) int32 { return own(key, value) }

// Own returns the strategy's number for a worker, 0 without one.
func Own(key uint64) float64 { return ownOf(key) }

// Cache asks for something to be done with a KV cache, and returns an errno.
func Cache(what, row int32, amount uint32, session string) int32 {
	return cache(what, row, amount, session)
}

// ZoneOffset returns the seconds that a time zone is east of UTC, or abi.NoZone.
func ZoneOffset(name string, now int64) int32 { return zoneOffset(name, now) }

// KVSwap sets key to value if it holds old, and returns 0 or an errno. An empty old means that the key is absent.
func KVSwap(key, old, value string, ttl int32) int32 { return kvCAS(key, old, value, ttl) }

// KVAdd adds delta to a counter and returns its value, math.MinInt64 on error.
func KVAdd(key string, delta int64, ttl int32) int64 { return kvIncr(key, delta, ttl) }

// Log writes one line.
func Log(level int32, text string) { log(level, text) }

// LogLevel returns the level below which lines are dropped.
func LogLevel() int32 { return logLevel() }

// Metric adds value to the module's counter of that name.
func Metric(name string, value float64) { metric(name, math.Float64bits(value)) }

// Error reports to the operator why the call is about to fail.
func Error(text string) { fail(text) }
