package daemon

import "sync"

// turns counts requests by model. Models of one pool may be on different workers, and two that alternate on one count would
// each meet the same row again and again.
type turns struct {
	mu sync.Mutex // guards of
	of map[string]uint64
}

// next is the number of requests for the model before this one. A client can make up names, so beyond maxNames they share a
// count.
func (t *turns) next(model string) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]uint64{}
	}
	if _, ok := t.of[model]; !ok && len(t.of) >= maxNames {
		model = "\x00others"
	}
	n := t.of[model]
	t.of[model] = n + 1
	return n
}
