package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// KV is the store behind kv_get, kv_cas and kv_incr. It answers from memory: a pick waits for it. ns is the strategy's name. A
// nil old means that the key must be absent; a ttl of 0 means no expiry. errno is 0, abi.ErrConflict, abi.ErrInvalid, or
// abi.ErrLimit if the strategy has used up its quota.
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
	Slots           int           // instances of a strategy; default GOMAXPROCS, at least 2: one may be at its upkeep
	CacheDir        string        // of compiled code, so that a start takes 30 ms and not 500; default none
	QuarantineAfter int           // errors in a row until a strategy is set aside; default 5
	QuarantineFor   time.Duration // until one pick tries it again; default 30 s
	Log             *slog.Logger  // default: none
	KV              KV            // default: kv_* answer ErrForbidden
	Interpreter     bool          // 20-50 times slower, for platforms without the compiler
}

// setupFactor gives start, configure, frame and maint more fuel than a pick: they run off the request path.
const setupFactor = 100

// features is what a module may use; the meter knows these and no more.
const features = api.CoreFeatureBulkMemoryOperations | api.CoreFeatureMultiValue | api.CoreFeatureMutableGlobal |
	api.CoreFeatureNonTrappingFloatToIntConversion | api.CoreFeatureReferenceTypes | api.CoreFeatureSignExtensionOps

// Host compiles modules and owns what strategies share: the engine and its cache of compiled code. Safe for concurrent use.
type Host struct {
	cfg   Config
	cache wazero.CompilationCache // nil = none
	clock func() time.Duration    // of the picks

	mu    sync.Mutex // guards plain, spare
	rt    wazero.Runtime
	plain wazero.Runtime // spare, once the cache has failed
	spare wazero.Runtime // without the cache, made when it may have failed
}

// New makes a Host. A CacheDir that cannot be written is warned of once, and done without.
func New(ctx context.Context, c Config) (*Host, error) {
	if err := littleEndian(); err != nil {
		return nil, err
	}
	if c.Fuel <= 0 {
		c.Fuel = 1_000_000
	}
	if c.PickTime <= 0 {
		c.PickTime = 5 * time.Millisecond
	}
	if c.MemoryBytes <= 0 {
		c.MemoryBytes = 16 << 20
	}
	if c.Slots <= 0 {
		c.Slots = max(2, runtime.GOMAXPROCS(0))
	}
	if c.QuarantineAfter <= 0 {
		c.QuarantineAfter = 5
	}
	if c.QuarantineFor <= 0 {
		c.QuarantineFor = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	h := &Host{cfg: c, clock: sinceEpoch}
	if c.CacheDir != "" && !c.Interpreter {
		cache, err := openCache(c.CacheDir)
		if err != nil {
			c.Log.Warn("compiled modules are not kept: every start compiles them anew; make the module cache writable",
				"dir", c.CacheDir, "err", err)
		} else {
			h.cache = cache
		}
	}
	rt, err := h.runtime(ctx, h.cache)
	if err != nil {
		return nil, err
	}
	h.rt = rt
	return h, nil
}

// openCache probes dir, since wazero finds out only when it has compiled something, and then fails the compilation.
func openCache(dir string) (wazero.CompilationCache, error) {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, err
	}
	probe, err := os.CreateTemp(dir, ".probe*")
	if err != nil {
		return nil, err
	}
	return cache, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// runtime makes a wazero runtime with the import modules in it.
func (h *Host) runtime(ctx context.Context, cache wazero.CompilationCache) (wazero.Runtime, error) {
	rc := wazero.NewRuntimeConfigCompiler()
	if h.cfg.Interpreter {
		rc = wazero.NewRuntimeConfigInterpreter()
	}
	rc = rc.WithCoreFeatures(features).WithDebugInfoEnabled(false).WithMemoryCapacityFromMax(true)
	if cache != nil {
		rc = rc.WithCompilationCache(cache)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, rc)
	if err := instantiateImports(ctx, rt); err != nil {
		_ = rt.Close(ctx)
		return nil, fmt.Errorf("host: instantiate imports: %w", err)
	}
	return rt, nil
}

// compileTime bounds a compilation. The meter refuses what would take 10 s; this is for what it does not know of, with room for
// a machine so busy that a Go guest of half a second takes twenty. It ends at the end of the function at hand.
const compileTime = time.Minute

// compile compiles a metered module. When the cache spoils it (a damaged file, a full disk) it goes on without. No lock is
// held meanwhile: another pool's module does not wait for it.
func (h *Host) compile(ctx context.Context, wasm []byte) (wazero.Runtime, wazero.CompiledModule, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, compileTime,
		fmt.Errorf("it is not done after %v; split its largest functions", compileTime))
	defer cancel()
	ctx = experimental.WithCompilationWorkers(ctx, 2) // wazero looks at ctx only if they are several
	h.mu.Lock()
	rt, plain := h.rt, h.plain
	h.mu.Unlock()
	if plain != nil {
		rt = plain
	}
	cm, err := rt.CompileModule(ctx, wasm)
	if ctx.Err() != nil {
		return nil, nil, errors.Join(context.Cause(ctx), err)
	}
	if err == nil || h.cache == nil || plain != nil {
		return rt, cm, err
	}
	if rt, perr := h.withoutCache(ctx); perr == nil {
		cm, perr = rt.CompileModule(ctx, wasm)
		if perr != nil { // it was the module
			return nil, nil, perr
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.plain == nil {
			h.plain = rt
			h.cfg.Log.Warn("compiled modules are not kept from now on; empty the module cache and see that its disk has room",
				"dir", h.cfg.CacheDir, "err", err)
		}
		return rt, cm, nil
	}
	return nil, nil, err
}

// withoutCache is the runtime that does without the cache.
func (h *Host) withoutCache(ctx context.Context) (wazero.Runtime, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spare == nil {
		rt, err := h.runtime(ctx, nil)
		if err != nil {
			return nil, err
		}
		h.spare = rt
	}
	return h.spare, nil
}

// Close frees the engine. Every Strategy must have been closed before.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.rt.Close(ctx)
	if h.spare != nil {
		err = errors.Join(err, h.spare.Close(ctx))
	}
	if h.cache != nil {
		err = errors.Join(err, h.cache.Close(ctx))
	}
	return err
}
