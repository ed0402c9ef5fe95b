package peers

import (
	"sort"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// Memory is how a rule remembers what was sent where.
type Memory struct {
	// Tokens bounds what is remembered of one worker; 0 = no bound.
	Tokens int
	// KV bounds it by so many times the worker's KV cache; 0 = not. The smaller of the two bounds holds.
	KV float64
	// Answers enters an answer's blocks at its end. Without it only prompts are remembered.
	Answers bool
	// HeadsFirst forgets the oldest block of a prompt from its head, as a cache does that touches blocks in their order.
	// A prompt without its head matches nothing.
	HeadsFirst bool
	// Every is how often what is over the bound is forgotten; 0 = at once.
	Every time.Duration
}

// memory holds for each worker the blocks that were sent there, the most recently sent longest.
type memory struct {
	Memory
	of    []recent
	swept time.Duration
}

// match returns the leading blocks of the chain that a worker is remembered to hold.
func (m *memory) match(worker int, chain []uint64) int {
	if worker >= len(m.of) {
		return 0
	}
	r := &m.of[worker]
	if m.HeadsFirst {
		for i, h := range chain {
			if _, ok := r.at[h]; !ok {
				return i
			}
		}
		return len(chain)
	}
	// A block is never older than one behind it, so what is left of a chain is its beginning.
	return sort.Search(len(chain), func(i int) bool { _, ok := r.at[chain[i]]; return !ok })
}

// touch enters a chain as the newest that the worker holds.
func (m *memory) touch(now time.Duration, worker int, chain []uint64, q *trial.Request, kv int) {
	for worker >= len(m.of) {
		m.of = append(m.of, recent{at: make(map[uint64]int32)})
	}
	r := &m.of[worker]
	for i := range chain {
		if !m.HeadsFirst {
			i = len(chain) - 1 - i
		}
		r.touch(chain[i])
	}
	r.bound = m.blocks(q.BlockTokens, kv)
	if m.Every == 0 {
		r.forget()
	} else if now >= m.swept+m.Every {
		m.swept = now
		for i := range m.of {
			m.of[i].forget()
		}
	}
}

// blocks returns the bound for a worker with so many tokens of KV cache; 0 = none.
func (m *memory) blocks(blockTokens, kv int) int {
	bound := m.Tokens
	if own := int(m.KV * float64(kv)); own > 0 && (bound == 0 || own < bound) {
		bound = own
	}
	if bound == 0 {
		return 0
	}
	return max(1, bound/max(1, blockTokens))
}

// lose forgets all of a worker.
func (m *memory) lose(worker int) {
	if worker < len(m.of) {
		m.of[worker] = recent{at: make(map[uint64]int32)}
	}
}

// recent is a set in order of use: a doubly linked list in a slice, whose element 0 is both ends.
type recent struct {
	at    map[uint64]int32
	nodes []node
	free  []int32
	bound int // blocks; 0 = none
}

type node struct {
	hash       uint64
	prev, next int32 // towards the oldest, the newest
}

func (r *recent) touch(hash uint64) {
	if r.nodes == nil {
		r.nodes = make([]node, 1, 64)
	}
	i, ok := r.at[hash]
	if ok {
		r.unlink(i)
	} else {
		i = r.take()
		r.nodes[i].hash = hash
		r.at[hash] = i
	}
	newest := r.nodes[0].prev
	r.nodes[i].prev, r.nodes[i].next = newest, 0
	r.nodes[newest].next, r.nodes[0].prev = i, i
}

func (r *recent) take() int32 {
	if n := len(r.free); n > 0 {
		i := r.free[n-1]
		r.free = r.free[:n-1]
		return i
	}
	r.nodes = append(r.nodes, node{})
	return int32(len(r.nodes) - 1)
}

func (r *recent) unlink(i int32) {
	n := &r.nodes[i]
	r.nodes[n.prev].next, r.nodes[n.next].prev = n.next, n.prev
}

// forget drops the oldest until the bound holds.
func (r *recent) forget() {
	for r.bound > 0 && len(r.at) > r.bound {
		oldest := r.nodes[0].next
		delete(r.at, r.nodes[oldest].hash)
		r.unlink(oldest)
		r.free = append(r.free, oldest)
	}
}
