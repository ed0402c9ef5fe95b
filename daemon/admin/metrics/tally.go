package metrics

import "sync"

// tally counts by pool.
type tally struct {
	mu sync.Mutex // guards n
	n  map[string]uint64
}

func (t *tally) add(pool string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]uint64{}
	}
	t.n[pool]++
}

func (t *tally) of(pool string) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n[pool]
}
