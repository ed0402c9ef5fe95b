package host

import (
	"log/slog"
	"time"
)

// KV is the store behind kv_get, kv_cas and kv_incr. It answers from memory: a pick waits for it. ns is the strategy's
// name. A nil old means that the key must be absent; a ttl of 0 means no expiry. errno is 0, abi.ErrConflict,
// abi.ErrInvalid, or abi.ErrLimit if the strategy has used up its quota.
type KV interface {
	Get(ns, key string) ([]byte, bool)
	CompareAndSwap(ns, key string, old, new []byte, ttl time.Duration) (errno int32)
	Add(ns, key string, delta int64, ttl time.Duration) (sum int64, errno int32)
}

// Config holds the defaults of all strategies. The zero value is useful.
type Config struct {
	Fuel            int64         // of one pick; default 1,000,000. Start, configure and maint get 100 times that
	PickTime        time.Duration // of one pick, by the clock; default 5 ms
	MemoryBytes     int           // of one instance; default 16 MiB. A standard Go guest needs 3 MiB at least
	Slots           int           // most instances of a strategy; default GOMAXPROCS, at least 2: one may be at its upkeep
	CacheDir        string        // of compiled code, so that a start takes 30 ms and not 500; default none
	QuarantineAfter int           // errors in a row until a strategy is set aside; default 5
	QuarantineFor   time.Duration // until one pick tries it again, doubled by each try in vain up to tenfold; default 30 s
	Log             *slog.Logger  // default: none
	KV              KV            // default: kv_* answer ErrForbidden
	Interpreter     bool          // 20-50 times slower, for platforms without the compiler

	// Stepped is for virtual time: what a strategy does is the same in each run. It has one instance and no keeper:
	// notices, upkeep and refills wait for [Strategy.Settle]. Fuel bounds a pick, time does not. A module that asks WASI
	// for chance gets the numbers of Options.Seed, and for the time that of its frame. No error sets a strategy aside.
	Stepped bool
}

// setupFactor gives start, configure, frame and maint more fuel than a pick: they run off the request path.
const setupFactor = 100
