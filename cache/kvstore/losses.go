package kvstore

import "sync"

// Losses gathers keys that a tier let go: evicted, deleted, expired, or gone with their disk or their server. Another
// tier may have such a key still: who takes the keys asks the Store. Its methods may be called by many at once, also
// under the locks of a Store or a Backing; none of them waits. A nil Losses gathers nothing.
type Losses struct {
	most int

	mu   sync.Mutex // guards all below
	keys []string
	many bool
}

// NewLosses makes one that gathers up to so many keys between two calls of Take.
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

// Take returns what was noted since the last call; many = more than there was room for. It notes on in the room of keys
// that it is given, those of an earlier call.
func (l *Losses) Take(room []string) (keys []string, many bool) {
	clear(room)
	l.mu.Lock()
	defer l.mu.Unlock()
	keys, many = l.keys, l.many
	l.keys, l.many = room[:0], false
	return keys, many
}
