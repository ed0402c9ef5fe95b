package holdings

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/armon/go-radix"
)

// Config sizes an Index. The zero value is useful.
type Config struct {
	// Workers bounds the slots, 0..Workers-1. What is reported of another slot is not kept. Default 4096.
	Workers int
	// Blocks bounds the blocks that one worker may report. A worker that reports more is cleared and not live, since its
	// view can no longer be right. Default 4 M: 64 M tokens in blocks of 16, some 200 MB.
	Blocks int
	// Orphans bounds the blocks of one worker that wait for a parent. Default 65536: a second of a busy worker.
	Orphans int
	// Planes bounds the combinations of adapter, salt and block size. Default 1<<17: a few hundred bytes each.
	Planes int
	// Chain bounds the blocks of all trees together, each counted once however many workers hold it, with those that no
	// worker holds and that lead to one that is held. When there are more, the worker that needs most of them and does
	// not hold them is cleared and is not live. Default 1<<27, 1 GB: a thousand workers with two million tokens each.
	Chain int
	// Predicted is how long a dispatch counts without an event that confirms it. Default 5 s.
	Predicted time.Duration
	// Predictions bounds the blocks that are predicted at one time; the oldest go early. Default 1<<22, 32 MB.
	Predictions int
	// Now reads the clock. Default: the monotonic time since New.
	Now func() time.Time
	// Seed begins the chains of hashes. Default: random. Whoever knows it can make up prompts that collide.
	Seed uint64
}

// Index keeps which blocks the workers hold by their own reports. Safe for concurrent use.
type Index struct {
	dir       directory
	seed      uint64
	now       func() int64 // nanoseconds since New
	orphans   int
	capacity  int
	most      int // workers
	chain     int // blocks of all trees
	relieving sync.Mutex
	predicted forecast

	mu      sync.Mutex                // taken to add or take away a worker, before all other locks
	workers atomic.Pointer[[]*worker] // by slot; never changed in place
	shared  atomic.Pointer[worker]
	live    []atomic.Bool // by slot: beside each other, since Match reads all
	scratch sync.Pool     // *scratch of Match
}

// New makes an empty index.
func New(c Config) *Index {
	or := func(v, def int) int {
		if v <= 0 {
			return def
		}
		return v
	}
	x := &Index{
		dir:      directory{tree: radix.New(), most: or(c.Planes, 1<<17)},
		seed:     c.Seed,
		orphans:  or(c.Orphans, 1<<16),
		capacity: or(c.Blocks, 4<<20),
		most:     or(c.Workers, 4096),
		chain:    or(c.Chain, 1<<27),
	}
	if x.seed == 0 {
		x.seed = rand.Uint64()
	}
	start := time.Now()
	x.now = func() int64 { return int64(time.Since(start)) }
	if c.Now != nil {
		start = c.Now()
		x.now = func() int64 { return int64(c.Now().Sub(start)) }
	}
	x.predicted.init(&x.dir, int64(or(int(c.Predicted), int(5*time.Second))), or(c.Predictions, 1<<22))
	x.live = make([]atomic.Bool, x.most)
	x.workers.Store(&[]*worker{})
	return x
}

// worker returns the worker of a slot, nil if nothing was written for it.
func (x *Index) worker(slot uint32) *worker {
	if slot == Shared {
		return x.shared.Load()
	}
	if all := *x.workers.Load(); int(slot) < len(all) {
		return all[slot]
	}
	return nil
}

// set makes w the worker of a slot. x.mu is held.
func (x *Index) set(slot uint32, w *worker) {
	if slot == Shared {
		x.shared.Store(w)
		return
	}
	all := slices.Clone(*x.workers.Load())
	if need := int(slot) + 1 - len(all); need > 0 {
		all = append(all, make([]*worker, need)...)
	}
	all[slot] = w
	x.workers.Store(&all)
}

// Forget drops all that is known of a worker: it is gone.
func (x *Index) Forget(slot uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.worker(slot)
	if w == nil {
		return
	}
	w.mu.Lock()
	w.gone = true
	w.live.Store(false)
	w.clear()
	w.mu.Unlock()
	x.set(slot, nil)
	x.predicted.forget(slot)
}

// Worker returns what is known of one worker, and the zero value for an unknown one.
func (x *Index) Worker(slot uint32) Stats {
	w := x.worker(slot)
	if w == nil {
		return Stats{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.tally
	s.Live = w.live.Load()
	s.Blocks = w.table.n
	s.Orphans = w.parked.blocks
	return s
}

// Live reports whether some worker's view is to be believed.
func (x *Index) Live() bool {
	for slot := range *x.workers.Load() {
		if x.live[slot].Load() {
			return true
		}
	}
	return false
}

// Chain returns the blocks of all trees together, each counted once however many workers hold it.
func (x *Index) Chain() int { return int(x.dir.total.Load()) }
