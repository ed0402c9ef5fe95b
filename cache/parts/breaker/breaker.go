// Package breaker decides whether something that failed is asked again. It counts failures in a row. With too many the
// breaker opens, and its owner asks nothing until the breaker closes or lets a trial through.
//
// Callers pass the time in, and log what it returns. Two breakers do not use this package. That of a worker
// (fleet/worker) weighs kinds of evidence. That of a strategy (host) is read by every pick, so it has no lock, and it
// counts slow picks as well as failures.
package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// Rule states when a breaker opens, and for how long. The zero value opens at the first failure.
type Rule struct {
	Failures int           // in a row that open it
	Over     time.Duration // that these take at least: a burst of requests fails together and is no outage
	Rest     time.Duration // until a trial, twice as long after each trial that failed; 0 = only Close ends it
	Longest  time.Duration // rest
}

// Breaker is closed at first. It is safe for concurrent use.
type Breaker struct {
	Rule // set before use

	open atomic.Bool // set under mu

	mu    sync.Mutex // guards what follows
	fails int        // in a row
	first time.Time  // of these failures
	since time.Time  // it opened
	again int        // failures since then
	until time.Time  // no trial before
	opens uint64
}

// Open reports whether it is open.
func (b *Breaker) Open() bool { return b.open.Load() }

// Opens returns how often it has opened.
func (b *Breaker) Opens() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opens
}

// OpenFor returns for how long it has been open; 0 if it is not.
func (b *Breaker) OpenFor(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.Open() {
		return 0
	}
	return now.Sub(b.since)
}

// Lets reports whether a request may be sent. After a rest it returns true once, and false to the others for another
// Rest: that one request is the trial.
func (b *Breaker) Lets(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.Open() {
		return true
	}
	if b.Rest == 0 || now.Before(b.until) {
		return false
	}
	b.until = now.Add(b.Rest)
	return true
}

// Fail counts a failure, and reports whether it opened the breaker.
func (b *Breaker) Fail(now time.Time) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails++
	if b.fails == 1 {
		b.first = now
	}
	if b.Open() {
		b.again++
		b.rest(now)
		return false
	}
	return b.fails >= b.Failures && now.Sub(b.first) >= b.Over && b.trip(now)
}

// Trip opens the breaker whatever was counted, and reports whether it was closed.
func (b *Breaker) Trip(now time.Time) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.Open() && b.trip(now)
}

func (b *Breaker) trip(now time.Time) bool {
	b.since = now
	b.again = 0
	b.opens++
	b.rest(now)
	b.open.Store(true)
	return true
}

func (b *Breaker) rest(now time.Time) { b.until = now.Add(min(b.Longest, b.Rest<<min(b.again, 10))) }

// Succeed ends a row of failures. An open breaker stays open.
func (b *Breaker) Succeed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails = 0
}

// Close ends a row of failures and closes the breaker. If it was open, Close returns for how long.
func (b *Breaker) Close(now time.Time) (lasted time.Duration, was bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails = 0
	if !b.open.Swap(false) {
		return 0, false
	}
	return now.Sub(b.since), true
}
