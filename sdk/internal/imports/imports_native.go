//go:build !wasip1

package imports

import (
	"math"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Host is what a test puts in the host's place; see the functions of the same names.
type Host interface {
	Str(kind, index int32, b []byte) int32
	PrefixMatch(row int32) int32
	PrefixHash(block int32) uint64
	PrefixBest(h *abi.Holder) int32
	PrefixWorker(row int32, h *abi.Holder) int32
	PrefixMatchKey(row int32, hashes []uint64) int32
	CacheTiers(row int32, tiers []abi.Tier) int32
	KVGet(key string, b []byte) int32
	KVGetMany(keys, b []byte) int32
	SetOwn(key uint64, value float64) int32
	Own(key uint64) float64
	Cache(what, row int32, amount uint32, session string) int32
	KVSwap(key, old, value string, ttl int32) int32
	KVAdd(key string, delta int64, ttl int32) int64
	Log(level int32, text string)
	LogLevel() int32
	Metric(name string, value float64)
	Error(text string)
}

// Current is the host in use. Tests that set it must not run in parallel.
var Current Host = nobody{}

// Reset puts back the host that knows nothing.
func Reset() { Current = nobody{} }

// Str copies the text of a kind into b and returns its length, or an errno. If the kind is a header, b holds the
// header's name before the call.
func Str(kind, index int32, b []byte) int32 { return Current.Str(kind, index, b) }

// PrefixMatch returns the leading blocks on a row's worker, or an errno.
func PrefixMatch(row int32) int32 { return Current.PrefixMatch(row) }

// PrefixHash returns the chained hash of a block of the prompt, 0 if there is none.
func PrefixHash(block int32) uint64 { return Current.PrefixHash(block) }

// PrefixBest fills h with the worker of the longest match and returns its size, or an errno.
func PrefixBest(h *abi.Holder) int32 { return Current.PrefixBest(h) }

// PrefixWorker fills h with what is known of a row's worker and returns its size, or an errno.
func PrefixWorker(row int32, h *abi.Holder) int32 { return Current.PrefixWorker(row, h) }

// PrefixMatchKey returns the leading blocks of another chain on a row's worker, or an errno.
func PrefixMatchKey(row int32, hashes []uint64) int32 { return Current.PrefixMatchKey(row, hashes) }

// CacheTiers fills tiers with those of a row's worker and returns the bytes they need, or an errno.
func CacheTiers(row int32, tiers []abi.Tier) int32 { return Current.CacheTiers(row, tiers) }

// KVGet copies a key's value into b and returns its length, or an errno.
func KVGet(key string, b []byte) int32 { return Current.KVGet(key, b) }

// KVGetMany copies the values of many keys into b, in the form of the contract, and returns their length, or an errno.
func KVGetMany(keys, b []byte) int32 { return Current.KVGetMany(keys, b) }

// SetOwn sets the strategy's number for a worker, and returns 0 or an errno.
func SetOwn(key uint64, value float64) int32 { return Current.SetOwn(key, value) }

// Own returns the strategy's number for a worker, 0 without one.
func Own(key uint64) float64 { return Current.Own(key) }

// Cache asks for something to be done with a KV cache, and returns an errno.
func Cache(what, row int32, amount uint32, session string) int32 {
	return Current.Cache(what, row, amount, session)
}

// ZoneOffset returns the seconds that a time zone is east of UTC, or abi.NoZone. It is the same for each Host.
func ZoneOffset(name string, now int64) int32 {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return abi.NoZone
	}
	_, east := time.Unix(0, now).In(zone).Zone()
	return int32(east)
}

// KVSwap sets key to value if it holds old, and returns 0 or an errno. An empty old means that the key is absent.
func KVSwap(key, old, value string, ttl int32) int32 { return Current.KVSwap(key, old, value, ttl) }

// KVAdd adds delta to a counter and returns its value, math.MinInt64 on error.
func KVAdd(key string, delta int64, ttl int32) int64 { return Current.KVAdd(key, delta, ttl) }

// Log writes one line.
func Log(level int32, text string) { Current.Log(level, text) }

// LogLevel returns the level below which lines are dropped.
func LogLevel() int32 { return Current.LogLevel() }

// Metric adds value to the module's counter of that name.
func Metric(name string, value float64) { Current.Metric(name, value) }

// Error reports to the operator why the call is about to fail.
func Error(text string) { Current.Error(text) }

type nobody struct{}

func (nobody) Str(int32, int32, []byte) int32             { return abi.ErrNotFound }
func (nobody) PrefixMatch(int32) int32                    { return abi.ErrNotFound }
func (nobody) PrefixHash(int32) uint64                    { return 0 }
func (nobody) PrefixBest(*abi.Holder) int32               { return abi.ErrNotFound }
func (nobody) PrefixWorker(int32, *abi.Holder) int32      { return abi.ErrNotFound }
func (nobody) PrefixMatchKey(int32, []uint64) int32       { return abi.ErrNotFound }
func (nobody) CacheTiers(int32, []abi.Tier) int32         { return abi.ErrNotFound }
func (nobody) KVGet(string, []byte) int32                 { return abi.ErrForbidden }
func (nobody) KVGetMany([]byte, []byte) int32             { return abi.ErrForbidden }
func (nobody) SetOwn(uint64, float64) int32               { return abi.ErrNotFound }
func (nobody) Own(uint64) float64                         { return 0 }
func (nobody) Cache(int32, int32, uint32, string) int32   { return abi.ErrNotFound }
func (nobody) KVSwap(string, string, string, int32) int32 { return abi.ErrForbidden }
func (nobody) KVAdd(string, int64, int32) int64           { return math.MinInt64 }
func (nobody) Log(int32, string)                          {}
func (nobody) LogLevel() int32                            { return abi.LevelInfo }
func (nobody) Metric(string, float64)                     {}
func (nobody) Error(string)                               {}
