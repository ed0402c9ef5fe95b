package seldom

import (
	"log/slog"
	"sync"
	"time"
)

// maxKeys bounds what is remembered, as keys may come from a client or a worker. When there are that many, a line with
// a new key is not logged until all keys are forgotten, forgetAfter after the first.
const (
	maxKeys     = 4096
	forgetAfter = time.Hour
)

// Once is lines that are logged once for each key. The zero value is none yet. It is safe for concurrent use.
type Once struct {
	mu    sync.Mutex // guards all below
	seen  map[string]bool
	first time.Time // of those that are remembered
}

// Warn logs a warning unless there was one with the key.
func (o *Once) Warn(log *slog.Logger, key, text string, args ...any) {
	if o.isFirst(key, time.Now()) {
		log.Warn(text, args...)
	}
}

func (o *Once) isFirst(key string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.seen) >= maxKeys && now.Sub(o.first) > forgetAfter {
		o.seen = nil
	}
	if o.seen[key] || len(o.seen) >= maxKeys {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
		o.first = now
	}
	o.seen[key] = true
	return true
}
