package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// compileTime bounds a compilation, by what its thread used of a processor: a good module of half a second takes twenty
// on a machine that is busy enough, and is not to blame. Where threads are not measured it is time by the clock.
const compileTime = slowdown * 10 * time.Second

// features is what a module may use; the meter knows these and no more.
const features = api.CoreFeatureBulkMemoryOperations | api.CoreFeatureMultiValue | api.CoreFeatureMutableGlobal |
	api.CoreFeatureNonTrappingFloatToIntConversion | api.CoreFeatureReferenceTypes | api.CoreFeatureSignExtensionOps

// compiler owns wazero's runtimes and its cache of compiled code. Safe for concurrent use.
type compiler struct {
	cfg   Config
	limit time.Duration
	cache wazero.CompilationCache // nil = none
	rt    wazero.Runtime

	given sync.WaitGroup // compilations, those that nobody waits for any longer too

	slow sync.Map // why a module took too long, by its SHA-256: each is measured once

	mu    sync.Mutex     // guards plain, spare
	plain wazero.Runtime // spare, once the cache has failed
	spare wazero.Runtime // without the cache, made when it may have failed
}

// newCompiler makes the runtime. If it cannot write the cache, it logs a warning and goes on without one.
func newCompiler(ctx context.Context, cfg Config) (*compiler, error) {
	c := &compiler{cfg: cfg, limit: compileTime}
	if cfg.CacheDir != "" && !cfg.Interpreter {
		cache, err := openCache(cfg.CacheDir)
		if err != nil {
			cfg.Log.Warn("compiled modules are not kept: every start compiles them anew; make the module cache writable",
				"dir", cfg.CacheDir, "err", err)
		} else {
			c.cache = cache
		}
	}
	rt, err := c.runtime(ctx, c.cache)
	if err != nil {
		return nil, err
	}
	c.rt = rt
	return c, nil
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
func (c *compiler) runtime(ctx context.Context, cache wazero.CompilationCache) (wazero.Runtime, error) {
	rc := wazero.NewRuntimeConfigCompiler()
	if c.cfg.Interpreter {
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

// compile compiles a metered module. When the cache spoils it (a damaged file, a full disk) it goes on without. No lock
// is held meanwhile: another pool's module does not wait for it.
func (c *compiler) compile(ctx context.Context, wasm []byte) (wazero.Runtime, wazero.CompiledModule, error) {
	sum := sha256.Sum256(wasm)
	if why, slow := c.slow.Load(sum); slow {
		return nil, nil, why.(error)
	}
	c.mu.Lock()
	rt, plain := c.rt, c.plain
	c.mu.Unlock()
	if plain != nil {
		rt = plain
	}
	cm, err := c.bounded(ctx, rt, wasm)
	if errors.Is(err, errTooLong) {
		c.slow.Store(sum, err)
	}
	if err == nil || errors.Is(err, errGivenUp) || c.cache == nil || plain != nil {
		return rt, cm, err
	}
	spare, spareErr := c.withoutCache(ctx)
	if spareErr != nil {
		return nil, nil, err
	}
	cm, spareErr = c.bounded(ctx, spare, wasm)
	if spareErr != nil { // it was the module
		return nil, nil, spareErr
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plain == nil {
		c.plain = spare
		c.cfg.Log.Warn("compiled modules are not kept from now on; empty the module cache and see that its disk has room",
			"dir", c.cfg.CacheDir, "err", err)
	}
	return spare, cm, nil
}

// errGivenUp is the error of a compilation that is no longer awaited, errTooLong that of one that took too long.
var (
	errGivenUp = errors.New("given up")
	errTooLong = errors.New("it takes too long")
)

// bounded compiles on a thread of its own, and waits until that is done, has used its time or ctx ends. wazero cannot
// be stopped within a function: a compilation that is given up goes on in the background, at most as long as the meter
// has let through, and is thrown away.
func (c *compiler) bounded(ctx context.Context, rt wazero.Runtime, wasm []byte) (wazero.CompiledModule, error) {
	type outcome struct {
		module wazero.CompiledModule
		err    error
	}
	thread, done := make(chan processorTime, 1), make(chan outcome, 1)
	c.given.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- newProcessorTime()
		cm, err := rt.CompileModule(context.WithoutCancel(ctx), wasm)
		done <- outcome{cm, err}
	})
	used := <-thread
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		var err error
		select {
		case o := <-done:
			return o.module, o.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-look.C:
			if used.now() < c.limit {
				continue
			}
			err = fmt.Errorf("%w: it is not done after %v of a processor; split its largest functions, or drop packages that "+
				"it hardly needs", errTooLong, c.limit)
		}
		c.given.Go(func() {
			if o := <-done; o.module != nil {
				_ = o.module.Close(context.WithoutCancel(ctx))
			}
		})
		return nil, fmt.Errorf("%w: %w", errGivenUp, err)
	}
}

// withoutCache returns the runtime that does without the cache.
func (c *compiler) withoutCache(ctx context.Context) (wazero.Runtime, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spare == nil {
		rt, err := c.runtime(ctx, nil)
		if err != nil {
			return nil, err
		}
		c.spare = rt
	}
	return c.spare, nil
}

// close frees the runtimes and the cache, once nothing compiles any longer.
func (c *compiler) close(ctx context.Context) error {
	c.given.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.rt.Close(ctx)
	if c.spare != nil {
		err = errors.Join(err, c.spare.Close(ctx))
	}
	if c.cache != nil {
		err = errors.Join(err, c.cache.Close(ctx))
	}
	return err
}

// processorTime measures what a thread uses of a processor; where threads are not measured, the time by the clock.
type processorTime struct {
	thread   int
	before   time.Duration // what the thread had used for other work
	measured bool
	began    time.Time
}

// newProcessorTime begins at the caller's thread, which must be locked to it.
func newProcessorTime() processorTime {
	p := processorTime{thread: threadID(), began: time.Now()}
	p.before, p.measured = threadTime(p.thread)
	return p
}

// now returns what was used since p began.
func (p processorTime) now() time.Duration {
	if used, ok := threadTime(p.thread); ok && p.measured {
		return used - p.before
	}
	return time.Since(p.began)
}
