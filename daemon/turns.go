package daemon

import "sync"

// turns counts requests by model. Models of one pool may be on different workers, and two that alternate on one count would
// each meet the same row again and again. It knows a model by the hash of its name, made with the pool's seed: a client can make up a name
// of 8 MB. Two names with one hash share a count, which harms neither.
type turns struct {
	mu sync.Mutex // guards of
	of map[uint64]uint64
}

// otherModels is where the models beyond maxNames are counted together.
const otherModels = 0

// next is the number of requests for the model before this one. A client can make up names, so beyond maxNames they share a
// count.
func (t *turns) next(model uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[uint64]uint64{}
	}
	if _, ok := t.of[model]; !ok && len(t.of) >= maxNames {
		model = otherModels
	}
	n := t.of[model]
	t.of[model] = n + 1
	return n
}
