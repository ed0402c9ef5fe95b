package remote

import (
	"sync"
	"time"
)

// evictions records how many values a server has evicted. The server does not report which.
type evictions struct {
	mu    sync.Mutex // guards all below
	known bool
	count int64
	last  time.Time // when count last grew, or was unknown
}

// note records the server's count; known = false: the server reports none.
func (e *evictions) note(count int64, known bool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !known || !e.known || count != e.count {
		e.last = now
	}
	e.known, e.count = known, count
}

// since reports whether the server may have evicted values since a time.
func (e *evictions) since(unixNano int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.known || unixNano <= e.last.UnixNano()
}
