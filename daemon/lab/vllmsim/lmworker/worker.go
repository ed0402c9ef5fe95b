package lmworker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// ChunkTokens is what LMCache stores as one by default.
const ChunkTokens = 256

// The releases that are played.
const (
	Release056 = "0.5.6"
	Release039 = "0.3.9"
)

// Config describes one worker and its controller.
type Config struct {
	// Pull and Reply are the controller's addresses, host:port. Heartbeat overrules the one that the controller gives.
	Pull, Reply, Heartbeat string
	// Release is Release056, the default, or Release039.
	Release string
	// Instance is lmcache_instance_id.
	Instance string
	// IP and Port are those that RegisterMsg names. Defaults 127.0.0.1 and 18390.
	IP   string
	Port int
	// Register is how long an answer to RegisterMsg is waited for. Default 30 s, as worker_socket_recv_timeout_ms.
	Register time.Duration
	// Beat is the time between two heartbeats, Status that between two looks at a full sync. Defaults 1 s and 5 s.
	Beat, Status time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Release == "" {
		c.Release = Release056
	}
	if c.Release != Release056 && c.Release != Release039 || c.Pull == "" || c.Reply == "" || c.Instance == "" {
		return c, fmt.Errorf("lmworker: release %q, pull %q, reply %q, instance %q; want %s or %s, two addresses and a name",
			c.Release, c.Pull, c.Reply, c.Instance, Release056, Release039)
	}
	if c.IP == "" {
		c.IP = "127.0.0.1"
	}
	if c.Port == 0 {
		c.Port = 18390
	}
	for _, d := range []struct {
		v         *time.Duration
		otherwise time.Duration
	}{{&c.Register, 30 * time.Second}, {&c.Beat, time.Second}, {&c.Status, 5 * time.Second}} {
		if *d.v <= 0 {
			*d.v = d.otherwise
		}
	}
	return c, nil
}

// What a worker keeps.
const (
	maxQueued = 1 << 20 // operations that wait for the controller
	maxChain  = 1 << 20 // keys of chunks, held or not, that a chunk may stand behind
)

// Worker reports one engine's CPU tier. Safe for concurrent use.
type Worker struct {
	cfg   Config
	extra uint64 // hash of a chunk's extra keys
	end   context.CancelFunc
	over  sync.WaitGroup
	wake  chan struct{} // of capacity 1: something is queued

	mu    sync.Mutex       // guards all below
	chain map[uint64]int64 // key of each chunk by the engine's hash
	held  map[int64]int    // chunks of each key in the tier: two salts share a key
	queue []op
	next  int64 // sequence number of the first operation queued
	leave bool  // deregister when it ends
}

// New starts a worker, which registers by itself.
func New(cfg Config) (*Worker, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Worker{cfg: cfg, extra: hashOfEmptyTuple, wake: make(chan struct{}, 1), chain: map[uint64]int64{},
		held: map[int64]int{}}
	if cfg.Release == Release039 {
		w.extra = hashOfNone
	}
	ctx, end := context.WithCancel(context.Background())
	w.end = end
	w.over.Go(func() { w.run(ctx) })
	return w, nil
}

// Leave makes Close deregister the worker first, as one does that is not killed.
func (w *Worker) Leave() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave = true
}

// Close ends the worker. It is safe to call twice, and for nil.
func (w *Worker) Close() {
	if w == nil {
		return
	}
	w.end()
	w.over.Wait()
}

// Publish queues what changed on the CPU. It never waits.
func (w *Worker) Publish(changes []engine.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range changes {
		c := &changes[i]
		switch {
		case c.Kind == engine.Cleared && c.Tiers:
			for _, key := range slices.Sorted(maps.Keys(w.held)) {
				w.report(op{evict: true, key: key})
			}
			clear(w.held)
		case c.Medium != engine.OnCPU:
		case c.Kind == engine.Stored:
			w.admit(c)
		case c.Kind == engine.Removed:
			w.evict(c.Hashes)
		}
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// admit takes the chunks of a Stored. Those behind a parent that was forgotten have no key that could be known, and are
// left out. It wants mu.
func (w *Worker) admit(c *engine.Change) {
	parent, ok := int64(noneHash), true
	if c.HasParent {
		parent, ok = w.chain[c.Parent]
	}
	size := len(c.Tokens) / len(c.Hashes)
	if !ok {
		return
	}
	if len(w.chain) > maxChain {
		maps.DeleteFunc(w.chain, func(_ uint64, key int64) bool { return w.held[key] == 0 })
	}
	for i, h := range c.Hashes {
		parent = chunkKey(parent, c.Tokens[i*size:(i+1)*size], w.extra)
		w.chain[h] = parent
		w.held[parent]++
		if w.held[parent] == 1 {
			w.report(op{key: parent})
		}
	}
}

// evict drops chunks. It wants mu.
func (w *Worker) evict(hashes []uint64) {
	for _, h := range hashes {
		key, ok := w.chain[h]
		if !ok || w.held[key] == 0 {
			continue
		}
		w.held[key]--
		if w.held[key] == 0 {
			delete(w.held, key)
			w.report(op{evict: true, key: key})
		}
	}
}

// report queues an operation. One that finds the queue full is lost with its number, so the controller sees a gap. It
// wants mu.
func (w *Worker) report(o op) {
	if len(w.queue) >= maxQueued {
		w.next += int64(len(w.queue))
		w.queue = w.queue[:0]
	}
	w.queue = append(w.queue, o)
}

// take returns up to n queued operations and the sequence number of the first.
func (w *Worker) take(n int) (ops []op, seq int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n = min(n, len(w.queue))
	ops = slices.Clone(w.queue[:n])
	w.queue = w.queue[n:]
	seq = w.next
	w.next += int64(n)
	return ops, seq
}

// snapshot returns all keys held, and forgets the operations that they contain.
func (w *Worker) snapshot() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = w.queue[:0]
	return slices.Sorted(maps.Keys(w.held))
}

// leaves reports whether Leave was called.
func (w *Worker) leaves() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leave
}
