package tier

import (
	"sync"
	"sync/atomic"
	"time"
)

// failuresToOpen is how many failures in a row open the breaker. Each costs its caller Timeout at most; fewer would let one
// pause of the scheduler open it.
const failuresToOpen = 5

// breaker says whether L2 may be asked. It opens by itself and is closed by the healer alone, after L2 has answered in time
// and knows what it was not told.
type breaker struct {
	open atomic.Bool

	mu    sync.Mutex // guards what follows
	fails int        // in a row
	since time.Time  // it opened
	opens uint64
}

func (b *breaker) success() {
	b.mu.Lock()
	b.fails = 0
	b.mu.Unlock()
}

// failure reports whether this one opened the breaker.
func (b *breaker) failure() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails++
	if b.fails < failuresToOpen || b.open.Load() {
		return false
	}
	b.since = time.Now()
	b.opens++
	b.open.Store(true)
	return true
}

// close returns for how long it was open.
func (b *breaker) close() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails = 0
	b.open.Store(false)
	return time.Since(b.since)
}
