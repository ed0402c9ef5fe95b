package imports

import (
	"math"
	"unsafe"
)

// A string parameter crosses as address and length, so it stands for two of the contract's integers.

//go:wasmimport warmpath_v1 str
func str(kind, index int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport warmpath_v1 prefix_match
func prefixMatch(row int32) int32

//go:wasmimport warmpath_v1 prefix_hash
func prefixHash(block int32) uint64

//go:wasmimport warmpath_v1 kv_get
func kvGet(key string, p unsafe.Pointer, n uint32) int32

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

// Str copies the text of a kind into b and returns its length, or an errno.
func Str(kind, index int32, b []byte) int32 {
	return str(kind, index, unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
}

// PrefixMatch returns the leading blocks on a row's worker, or an errno.
func PrefixMatch(row int32) int32 { return prefixMatch(row) }

// PrefixHash returns the chained hash of a block of the prompt, 0 if there is none.
func PrefixHash(block int32) uint64 { return prefixHash(block) }

// KVGet copies a key's value into b and returns its length, or an errno.
func KVGet(key string, b []byte) int32 {
	return kvGet(key, unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
}

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

// Error tells the operator why the call is about to fail.
func Error(text string) { fail(text) }
