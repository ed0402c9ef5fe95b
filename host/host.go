package host

import (
	"context"
	"log/slog"
	"runtime"
	"time"
)

// Host compiles modules and owns what strategies share: the engine and its cache of compiled code. Safe for concurrent
// use.
type Host struct {
	cfg    Config
	codes  codes
	shared shared
	clock  func() time.Duration // of the picks
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
		shared: shared{of: map[instancesKey]*instances{}}}, nil
}

// never is more errors in a row than a strategy makes.
const never = 1 << 40

// Close frees the engine. Every Strategy must have been closed before.
func (h *Host) Close(ctx context.Context) error { return h.codes.compiler.close(ctx) }
