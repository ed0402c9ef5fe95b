package remote

import (
	"sync"
	"time"
)

// evictions records how many values a server has evicted. The server does not report which.
type evictions struct {
	mu    sync.Mutex // guards all below
	known bool
	run   string // the server's run_id: each start of a server has its own
	count int64
	last  time.Time // when the server may last have lost values: count grew or was unknown, or the server was started
}

// note records the server's run_id, "" if it reports none, and its count; known = false: it reports none. It reports
// whether the server was restarted since the last call.
func (e *evictions) note(run string, count int64, known bool, now time.Time) (restarted bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	restarted = run != "" && e.run != "" && run != e.run
	if !known || !e.known || count != e.count || restarted {
		e.last = now
	}
	if run != "" {
		e.run = run
	}
	e.known, e.count = known, count
	return restarted
}

// since reports whether the server may have lost values since a time.
func (e *evictions) since(unixNano int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.known || unixNano <= e.last.UnixNano()
}
