package engine

import (
	"container/list"
	"sync"
)

// Tier is memory beside the GPU that keeps what the GPU forgets: a worker's CPU memory, or a store that workers share.
// It holds chunks of tokens by the hash of their last block and drops the least recently used. Safe for concurrent use,
// as engines that share one run side by side.
type Tier struct {
	mu     sync.Mutex // guards chunks and recent
	size   int        // chunks
	chunks map[uint64]*list.Element
	recent *list.List // of uint64, the most recent first
}

// NewTier returns an empty tier for so many tokens in chunks of chunkTokens.
func NewTier(tokens, chunkTokens int) *Tier {
	return &Tier{size: tokens / max(1, chunkTokens), chunks: map[uint64]*list.Element{}, recent: list.New()}
}

// Len returns the number of chunks held.
func (t *Tier) Len() int {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recent.Len()
}

// Clear drops all chunks.
func (t *Tier) Clear() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.chunks)
	t.recent.Init()
}

// touch makes a chunk the most recent one. It returns false if the tier does not hold it.
func (t *Tier) touch(hash uint64) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.chunks[hash]
	if ok {
		t.recent.MoveToFront(e)
	}
	return ok
}

// put stores a chunk, and reports whether it is new. dropped has the chunk that made room, if one had to.
func (t *Tier) put(hash uint64) (fresh bool, dropped []uint64) {
	if t == nil || t.size == 0 {
		return false, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.chunks[hash]; ok {
		t.recent.MoveToFront(e)
		return false, nil
	}
	if t.recent.Len() >= t.size {
		last := t.recent.Back()
		old := t.recent.Remove(last).(uint64)
		delete(t.chunks, old)
		dropped = append(dropped, old)
	}
	t.chunks[hash] = t.recent.PushFront(hash)
	return true, dropped
}

// hashes lists the chunks, the most recent first.
func (t *Tier) hashes() (list []uint64) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.recent.Front(); e != nil; e = e.Next() {
		list = append(list, e.Value.(uint64))
	}
	return list
}
