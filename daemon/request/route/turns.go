package route

import "sync"

// turns counts requests by model and fence. Models of one pool may be on different workers, as those of two fences are,
// and two that alternate on one count would each meet the same row again and again. It knows both by the hash of their
// names, made with the pool's seed: a client can make up a name of 8 MB. Two names with one hash share a count, which
// harms neither.
type turns struct {
	mu sync.Mutex // guards of
	of counted[uint64]
}

// counted has something for each of at most maxModels names, as a client can make up names.
type counted[V any] map[uint64]V

const (
	maxModels   = 1000
	otherModels = 0 // the names that are not counted apart share a count
)

// takes reports whether a name is counted, or there is room for it.
func (c counted[V]) takes(name uint64) bool {
	_, ok := c[name]
	return ok || len(c) < maxModels
}

// next counts a request for the model and returns the number of those before it.
func (t *turns) next(model uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = counted[uint64]{}
	}
	model = t.known(model)
	n := t.of[model]
	t.of[model] = n + 1
	return n
}

// giveBack takes one request off the model's count. A model without requests is dropped, so that a client with random
// names takes no room from others.
func (t *turns) giveBack(model uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	model = t.known(model)
	if n := t.of[model]; n > 1 {
		t.of[model] = n - 1
	} else {
		delete(t.of, model)
	}
}

// peek returns what next would return, and counts nothing.
func (t *turns) peek(model uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[t.known(model)]
}

// known returns the model, or otherModels if there is no room for it. The caller holds t.mu.
func (t *turns) known(model uint64) uint64 {
	if t.of.takes(model) {
		return model
	}
	return otherModels
}
