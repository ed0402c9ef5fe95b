package worker

import (
	"sync"
	"testing"
	"time"
)

// burst is how many repeats a budget has at once.
const burst = 60

// TestStorm: every attempt of every request fails, and each would be repeated twice.
func TestStorm(t *testing.T) {
	f := func(rate, quiet, lasts int) {
		t.Helper()
		p := New(Config{RetryBudget: .2}, start)
		start := p.fleet.began
		for i := range quiet * rate { // a good time before earns only the burst
			p.Request(start.Add(time.Duration(i) * time.Second / time.Duration(rate)))
		}
		start = start.Add(time.Duration(quiet) * time.Second)
		attempts := 0
		for i := range lasts * rate {
			at := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
			p.Request(at)
			for attempts++; p.MayRetry(at); attempts++ {
			}
		}
		limit := 1.2*float64(lasts*rate) + 10*float64(lasts)
		if float64(attempts) > limit {
			t.Errorf("%d/s for %d s after %d s of peace: %d attempts; want at most %v", rate, lasts, quiet, attempts, limit)
		}
		if float64(attempts) < .98*limit-float64(lasts) {
			t.Errorf("%d/s for %d s: %d attempts of the %v that may be", rate, lasts, attempts, limit)
		}
		if p.Counts().RetriesRefused == 0 {
			t.Error("no refusal was counted")
		}
	}
	f(1000, 0, 3)
	f(1000, 0, 10)
	f(1000, 10, 10)
	f(1000, 10, 30)
	f(50, 60, 60)
}

// TestOneDeath: all 50 requests without an answer at a worker that is killed are repeated at once, and again seven
// seconds later.
func TestOneDeath(t *testing.T) {
	p := New(Config{}, start)
	for _, at := range []float64{1, 8} {
		for i := range 50 {
			if !p.MayRetry(p.after(at)) {
				t.Fatalf("at %v s: repeat %d of 50 is refused", at, i+1)
			}
		}
	}
	n := 0
	for p.MayRetry(p.after(8)) {
		n++
	}
	if n > 20 {
		t.Errorf("%d more; want few", n)
	}
}

func TestBudgetRaces(t *testing.T) {
	p := New(Config{}, start)
	now := p.after(1)
	var all sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	for range 8 {
		all.Go(func() {
			for range 100 {
				if p.MayRetry(now) {
					mu.Lock()
					granted++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if granted != burst || p.Counts().RetriesRefused != 800-burst {
		t.Errorf("%d granted, %d refused; want %d and the rest", granted, p.Counts().RetriesRefused, burst)
	}
}

// TestPeaceEarnsNoMoreThanTheBurst: however many requests came in one instant, the bucket of a storm after them holds
// the burst.
func TestPeaceEarnsNoMoreThanTheBurst(t *testing.T) {
	p := New(Config{RetryBudget: 1}, start)
	now := p.fleet.began.Add(time.Hour)
	for range 10 * burst {
		p.Request(now)
	}
	n := 0
	for p.MayRetry(now) {
		n++
	}
	if n != burst {
		t.Errorf("%d repeats at once; want %d", n, burst)
	}
}
