package seldom

import (
	"log/slog"
	"sync"
)

// maxKeys bounds what is remembered, as keys may come from a client or a worker. No line has a key beyond.
const maxKeys = 4096

// Once is lines that are logged once for each key. The zero value is none yet. It is safe for concurrent use.
type Once struct {
	mu   sync.Mutex // guards seen
	seen map[string]bool
}

// Warn logs a warning unless there was one with the key.
func (o *Once) Warn(log *slog.Logger, key, text string, args ...any) {
	if o.first(key) {
		log.Warn(text, args...)
	}
}

func (o *Once) first(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[key] || len(o.seen) >= maxKeys {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[key] = true
	return true
}
