package kvstore

import "sync"

// Losses collects keys that left a tier: evicted, deleted, expired, or lost with a disk or a server. Another tier may
// still have such a key, so a reader of Losses checks with the Store. Many goroutines may call its methods at once,
// also under the locks of a Store or a Backing; no method waits. A nil Losses collects nothing.
type Losses struct {
	most int

	mu   sync.Mutex // guards all below
	keys []string
	many bool
}

// NewLosses makes a Losses that collects up to most keys between two calls of Take.
func NewLosses(most int) *Losses { return &Losses{most: most} }

// Note adds a key.
func (l *Losses) Note(key string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.many:
	case len(l.keys) == l.most:
		l.many = true
	default:
		l.keys = append(l.keys, key)
	}
}

// Take returns the keys since the last call; many = there were more than fit. It continues in the memory of room, the
// keys of an earlier call.
func (l *Losses) Take(room []string) (keys []string, many bool) {
	clear(room)
	l.mu.Lock()
	defer l.mu.Unlock()
	keys, many = l.keys, l.many
	l.keys, l.many = room[:0], false
	return keys, many
}
