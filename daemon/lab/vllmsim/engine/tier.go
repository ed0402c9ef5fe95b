package engine

import (
	"math"
	"sync"
)

// Tier is memory outside the GPU that keeps the blocks that the GPU evicts: a worker's CPU memory, or a store that
// workers share. It holds chunks of tokens by the hash of their last block and drops the least recently used. Safe for
// concurrent use, as engines that share one run side by side.
//
// The chunks lie in one slice and are linked by index: a list of pointers took 44 % of a simulated run, most of it to
// fetch and to collect its elements.
type Tier struct {
	mu     sync.Mutex // guards all below
	size   int        // chunks
	at     map[uint64]int32
	chunks []chunk // chunks[0] is the ring's end: its next is the most recent, its prev the least
}

// chunk is one chunk held, between its neighbours in the order of use.
type chunk struct {
	hash       uint64
	weights    uint32 // that have computed it
	prev, next int32
}

// NewTier returns an empty tier for so many tokens in chunks of chunkTokens.
func NewTier(tokens, chunkTokens int) *Tier {
	size := min(tokens/max(1, chunkTokens), math.MaxInt32-1)
	return &Tier{size: size, at: map[uint64]int32{}, chunks: make([]chunk, 1)}
}

// Len returns the number of chunks held.
func (t *Tier) Len() int {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.at)
}

// Clear drops all chunks.
func (t *Tier) Clear() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.at)
	t.chunks = t.chunks[:1]
	t.chunks[0] = chunk{}
}

// touch makes a chunk the most recent one, and returns the weights that have computed it. It returns false if the tier
// does not hold it.
func (t *Tier) touch(hash uint64) (weights uint32, ok bool) {
	if t == nil {
		return 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i, ok := t.at[hash]
	if ok {
		t.unlink(i)
		t.link(i)
		weights = t.chunks[i].weights
	}
	return weights, ok
}

// put stores a chunk, and reports whether it is new. dropped has the chunk that made room, if one had to. One that is
// held stays as it is.
func (t *Tier) put(hash uint64, weights uint32) (fresh bool, dropped []uint64) {
	if t == nil || t.size == 0 {
		return false, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i, held := t.at[hash]
	switch {
	case held:
		t.unlink(i)
	case len(t.at) < t.size:
		i = int32(len(t.chunks))
		t.chunks = append(t.chunks, chunk{hash: hash, weights: weights})
	default:
		i = t.chunks[0].prev
		old := t.chunks[i].hash
		dropped = append(dropped, old)
		delete(t.at, old)
		t.unlink(i)
		t.chunks[i].hash = hash
		t.chunks[i].weights = weights
	}
	t.link(i)
	if held {
		return false, nil
	}
	t.at[hash] = i
	return true, dropped
}

// link puts a chunk before all others.
func (t *Tier) link(i int32) {
	end, c := &t.chunks[0], &t.chunks[i]
	c.prev, c.next = 0, end.next
	t.chunks[end.next].prev = i
	end.next = i
}

// unlink takes a chunk out of the order.
func (t *Tier) unlink(i int32) {
	c := &t.chunks[i]
	t.chunks[c.prev].next, t.chunks[c.next].prev = c.next, c.prev
}

// hashes lists the chunks, the most recent first.
func (t *Tier) hashes() (list []uint64) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := t.chunks[0].next; i != 0; i = t.chunks[i].next {
		list = append(list, t.chunks[i].hash)
	}
	return list
}
