package host

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"
)

// Host compiles modules and owns what strategies share: the engine and its cache of compiled code. Safe for concurrent
// use.
type Host struct {
	cfg    Config
	codes  codes
	shared shared
	clock  func() time.Duration // of the picks
	loaded loaded
}

// loaded are the strategies that use the engine, those that load or close too. Safe for concurrent use.
type loaded struct {
	mu     sync.Mutex
	of     map[*Strategy]struct{} // nil once the host closes
	ending sync.WaitGroup         // of all, and of those that load
}

// begin counts a strategy that is to load, and reports whether the host is open.
func (l *loaded) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		return false
	}
	l.ending.Add(1)
	return true
}

// add records a strategy that has loaded, and reports whether the host is open.
func (l *loaded) add(s *Strategy) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		return false
	}
	l.of[s] = struct{}{}
	return true
}

// end forgets one that is closed; nil = one that has not loaded.
func (l *loaded) end(s *Strategy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, s)
	l.ending.Done()
}

// closeAll closes all, and waits for those that somebody else closes.
func (l *loaded) closeAll(ctx context.Context) {
	l.mu.Lock()
	of := l.of
	l.of = nil
	l.mu.Unlock()
	for s := range of {
		s.Close(ctx)
	}
	l.ending.Wait()
}

// New makes a Host. If it cannot write CacheDir, it logs one warning and goes on without.
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
	clock := sinceEpoch
	if c.Stepped {
		c.Slots, c.QuarantineAfter = 1, never
		clock = func() time.Duration { return 0 }
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
	compiler, err := newCompiler(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Host{cfg: c, clock: clock, codes: codes{compiler: compiler, of: map[codeKey]*code{}},
		shared: shared{of: map[instancesKey]*instances{}}, loaded: loaded{of: map[*Strategy]struct{}{}}}, nil
}

// never is more errors in a row than a strategy makes.
const never = 1 << 40

// Close closes all strategies, and frees the engine once they and what compiles have ended: the memory of an instance
// that runs would go with it.
func (h *Host) Close(ctx context.Context) error {
	h.loaded.closeAll(ctx)
	return h.codes.compiler.close(ctx)
}
