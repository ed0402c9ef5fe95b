package prefix

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/armon/go-radix"
)

// Config sizes an Index. The zero value is useful.
type Config struct {
	// Workers is the number of worker slots for which there is room at once. SetCapacity makes room for a larger slot, up
	// to MaxWorkers. Default 1024, 48 bytes each.
	Workers int
	// Capacity is the assumed size of a worker's cache, in blocks, until SetCapacity is called. Default 32768: a million
	// tokens of text in blocks of 128 bytes, twice a usual worker. Half the true size hurts far more than double.
	Capacity int
	// MaxNodes bounds the nodes of all trees together. When there are more, the index drops the oldest holdings of the
	// fleet. Default 1<<20, an estimated 200 MB without the hashes; a conversation takes one or two.
	MaxNodes int
	// MaxNamespaces bounds the directory; beyond it the one that holds least is dropped. Default 4096.
	MaxNamespaces int
	// Now reads a clock in nanoseconds. Default: monotonic time since New.
	Now func() int64
}

// MaxWorkers bounds the worker slots of an index: 0 to MaxWorkers-1.
const MaxWorkers = 1 << 17

// Index estimates which leading blocks of which prompts each worker holds. Safe for concurrent use.
type Index struct {
	forest
	names    directory // guarded by forest.mu
	maxNames int
	capacity int // of a worker without SetCapacity
	now      func() int64
	uses     atomic.Int64 // of namespaces so far
	scratch  sync.Pool    // *scratch of Match
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
		forest:   forest{maxNodes: or(c.MaxNodes, 1<<20), workers: make([]worker, or(c.Workers, 1024))},
		names:    directory{radix.New()},
		maxNames: or(c.MaxNamespaces, 4096),
		capacity: or(c.Capacity, 32768),
		now:      c.Now,
	}
	if x.now == nil {
		start := time.Now()
		x.now = func() int64 { return int64(time.Since(start)) }
	}
	for i := range x.workers {
		x.workers[i].capacity = x.capacity
	}
	x.scratch.New = func() any { return new(scratch) }
	return x
}

// Namespace returns the tree of that name ("model:adapter#salt"), and makes it if there is none. If there are too many,
// the one that holds the fewest blocks is dropped.
func (x *Index) Namespace(name string) *Namespace {
	key := bounded(name)
	x.mu.RLock()
	n := x.names.get(key)
	x.mu.RUnlock()
	if n == nil {
		return x.create(key)
	}
	n.used.Store(x.uses.Add(1))
	return n
}

// Space is Namespace for a name of which only the hash is known.
func (x *Index) Space(id uint64) *Namespace {
	var key [8]byte // a string made of it for a search stays on the stack
	binary.BigEndian.PutUint64(key[:], id)
	x.mu.RLock()
	n := x.names.get(string(key[:]))
	x.mu.RUnlock()
	if n == nil {
		return x.create(string(key[:]))
	}
	n.used.Store(x.uses.Add(1))
	return n
}

// Clear drops all namespaces and all holdings of the workers. The capacities stay.
func (x *Index) Clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.names.all() {
		x.forget(n)
	}
}

func (x *Index) create(key string) *Namespace {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := x.names.get(key); n != nil { // made between the two locks
		return n
	}
	for x.names.len() >= x.maxNames {
		x.forget(x.names.lightest(x.uses.Load() - int64(x.maxNames)/8))
	}
	n := &Namespace{key: key, forest: &x.forest, scratch: &x.scratch, index: x}
	if len(key) == 8 {
		n.root.last = binary.BigEndian.Uint64([]byte(key))
	}
	n.used.Store(x.uses.Add(1))
	x.names.add(n)
	return n
}

// forget drops a namespace with all its content. The caller holds the lock.
func (x *Index) forget(n *Namespace) {
	x.names.remove(n)
	n.gone = true
	x.prune(&n.root)
	n.root.kids = kids{}
}

// SetCapacity sets how many blocks the worker's KV cache holds; 0 returns it to Config.Capacity. It evicts blocks
// beyond that at once. A call with the same number is cheap. The index learns nothing of a slot beyond Config.Workers
// before the first call for it, or for a larger one.
func (x *Index) SetCapacity(slot uint32, blocks int) {
	if blocks <= 0 {
		blocks = x.capacity
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if slot >= MaxWorkers {
		return
	}
	for int(slot) >= len(x.workers) {
		x.workers = append(x.workers, worker{capacity: x.capacity})
	}
	x.workers[slot].capacity = blocks
	x.trim(slot)
}

// Remove drops all that the worker held: it is gone or has restarted. Its capacity stays, since a restarted worker
// seldom has another. If another worker gets the slot, SetCapacity sets its capacity.
func (x *Index) Remove(slot uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if int(slot) >= len(x.workers) {
		return
	}
	w := &x.workers[slot]
	for w.blocks > 0 {
		x.shorten(slot, w.blocks)
	}
}

// Each calls f with the chains that the worker holds, the last touched first, until f returns false. ago is how long
// before the call of Each the chain was touched; it is negative if the chain was touched since. Each leaves out a chain
// that was touched together with a longer one. TouchAgo with each of them gives another index the same content.
//
// Each holds the lock for some ten microseconds at a time and never while f runs, so the index changes meanwhile: a
// chain touched in between may come twice, and one evicted in between may be left out. f must not keep chain. Each
// leaves out namespaces that were not made by Space.
func (x *Index) Each(slot uint32, f func(space uint64, chain []uint64, ago time.Duration) bool) {
	began := x.now()
	x.mu.RLock()
	known := int(slot) < len(x.workers)
	x.mu.RUnlock()
	if !known {
		return
	}
	for _, until := range []int64{math.MinInt64, began} { // the second lap finds what was touched during the first
		c := cursor{slot: slot, until: until}
		for more := true; more; {
			x.mu.RLock()
			more = c.read(&x.forest)
			x.mu.RUnlock()
			for i := range c.found {
				h := &c.found[i]
				if !f(h.space, c.blocks[h.from:h.to], time.Duration(began-h.stamp)) {
					return
				}
			}
		}
	}
}

// WorkerStats describes what the index holds for one worker.
type WorkerStats struct {
	Blocks   int           // in the index
	Capacity int           // the most that the index keeps
	HasTail  bool          // Blocks > 0
	TailAge  time.Duration // since the last touch of the block that is evicted next
}

// Worker returns the stats of one worker; zero for a slot out of range.
func (x *Index) Worker(slot uint32) WorkerStats {
	var out [1]WorkerStats
	x.WorkersInto([]uint32{slot}, out[:])
	return out[0]
}

// WorkersInto sets out[i] for slots[i], under one lock and with one reading of the clock: for a pick over many rows.
func (x *Index) WorkersInto(slots []uint32, out []WorkerStats) {
	if len(out) < len(slots) {
		panic(fmt.Sprintf("BUG: prefix: %d results for %d slots", len(out), len(slots)))
	}
	now := x.now()
	x.mu.RLock()
	defer x.mu.RUnlock()
	for i, slot := range slots {
		out[i] = WorkerStats{}
		if int(slot) >= len(x.workers) {
			continue
		}
		w := &x.workers[slot]
		s := WorkerStats{Blocks: w.blocks, Capacity: w.capacity, HasTail: w.blocks > 0}
		if s.HasTail {
			s.TailAge = max(0, time.Duration(now-w.recs[w.tail()].stamp))
		}
		out[i] = s
	}
}

// Stats counts what the index holds and has dropped.
type Stats struct {
	Namespaces int
	Nodes      int
	Blocks     int    // (worker, block) pairs
	Evicted    uint64 // pairs dropped because a worker's capacity was reached
	Crowded    uint64 // pairs dropped because MaxNodes or MaxNamespaces was reached
}

// Stats reads the counters.
func (x *Index) Stats() Stats {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := Stats{Namespaces: x.names.len(), Nodes: x.nodes, Evicted: x.evicted, Crowded: x.crowded}
	for i := range x.workers {
		s.Blocks += x.workers[i].blocks
	}
	return s
}
