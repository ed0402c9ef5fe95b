package judge

import (
	"sync"
	"time"
)

const (
	retryBurst  = 60   // a worker dies with 50 requests unanswered: all of them may go elsewhere, and ten more
	retryFloor  = 10.0 // a second
	retryEarned = 0.9
)

// Budget bounds a pool's repeats. Without a bound a fleet that answers 503 would get several times the requests that
// broke it.
//
// A bucket pays for the repeats. It holds retryBurst. For each request it gains nine tenths of RetryBudget, and each
// second nine tenths of 10. The tenth that is kept back makes up for the burst: over any time in which 1,000 requests a
// second all fail, from 3 s on, attempts are at most 1.2 times the requests and 10 a second. A window that slides over
// the last 10 s lost: a storm after 10 good seconds may spend all that they earned, 2,100 repeats, in its first second.
type Budget struct {
	mu     sync.Mutex // guards all below
	tokens float64
	at     time.Time // when tokens was last brought up to date
	denied uint64
}

// NewBudget makes a full budget.
func NewBudget() *Budget { return &Budget{tokens: retryBurst} }

// Earn adds a request's share of a repeat.
func (b *Budget) Earn(share float64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passTime(now)
	b.tokens = min(retryBurst, b.tokens+retryEarned*share)
}

// Spend takes one repeat from the bucket and reports whether there was one.
func (b *Budget) Spend(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passTime(now)
	if b.tokens < 1 {
		b.denied++
		return false
	}
	b.tokens--
	return true
}

// Denied returns how often Spend found the bucket empty.
func (b *Budget) Denied() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.denied
}

// passTime adds the gain of the time since at. Callers' times may be a little out of order; at never goes back.
func (b *Budget) passTime(now time.Time) {
	if b.at.IsZero() {
		b.at = now
	}
	if dt := now.Sub(b.at).Seconds(); dt > 0 {
		b.tokens = min(retryBurst, b.tokens+retryEarned*retryFloor*dt)
		b.at = now
	}
}
