package tier

import (
	"sync"
	"sync/atomic"
	"time"
)

// The breaker opens after failuresToOpen failures in a row, once nothing has succeeded for silence. The count alone
// took a burst of requests on cold connections, which fail together within 5 ms, for an outage: of 10,000 bindings that
// a restarted router asked for, 20 at once, it did not find a half.
const (
	failuresToOpen = 5
	silence        = 150 * time.Millisecond
)

// breaker decides whether Redis may be asked. It opens by itself. Only the healer closes it, once Redis has answered in
// time and has got what it missed.
type breaker struct {
	open atomic.Bool

	mu    sync.Mutex // guards what follows
	fails int        // in a row
	first time.Time  // of these failures
	since time.Time  // it opened
	opens uint64
}

func (b *breaker) success() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails = 0
}

// failure reports whether this one opened the breaker.
func (b *breaker) failure() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails++
	if b.fails == 1 {
		b.first = time.Now()
	}
	if b.fails < failuresToOpen || time.Since(b.first) < silence || b.open.Load() {
		return false
	}
	b.since = time.Now()
	b.opens++
	b.open.Store(true)
	return true
}

// openFor returns for how long it has been open; 0 if it is not.
func (b *breaker) openFor() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open.Load() {
		return 0
	}
	return time.Since(b.since)
}

// opened returns how often it has opened.
func (b *breaker) opened() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opens
}

// close returns for how long it was open.
func (b *breaker) close() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails = 0
	b.open.Store(false)
	return time.Since(b.since)
}
