package remote

import (
	"sync"
	"time"
)

// evictions is what is known of the values that a server has evicted. It says how many, and not which.
type evictions struct {
	mu    sync.Mutex // guards all below
	known bool
	count int64
	last  time.Time // that it had become more, or was not known
}

// note takes over what the server says; known = false: it does not say.
func (e *evictions) note(count int64, known bool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !known || !e.known || count != e.count {
		e.last = now
	}
	e.known, e.count = known, count
}

// since reports whether the server may have evicted something after a time.
func (e *evictions) since(unixNano int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.known || unixNano <= e.last.UnixNano()
}
