package breaker

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestHammer: at once with successes, failures and trials, a breaker opens and closes as often as its callers are told.
func TestHammer(t *testing.T) {
	b := Breaker{Rule: Rule{Failures: 3, Rest: time.Millisecond, Longest: 4 * time.Millisecond}}
	var opened, closed atomic.Int64
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			now := time.Unix(1000, 0)
			for i := range 3000 {
				now = now.Add(time.Millisecond)
				switch (i + g) % 7 {
				case 0:
					if _, was := b.Close(now); was {
						closed.Add(1)
					}
				case 1:
					b.Succeed()
				case 2:
					if b.Trip(now) {
						opened.Add(1)
					}
				case 3:
					_, _ = b.Lets(now), b.OpenFor(now)
				default:
					if b.Fail(now) {
						opened.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	still := int64(0)
	if b.Open() {
		still = 1
	}
	if opened.Load() == 0 || int64(b.Opens()) != opened.Load() || opened.Load() != closed.Load()+still {
		t.Errorf("opened %d times, %d by its own count, closed %d times, open now: %d", opened.Load(), b.Opens(), closed.Load(), still)
	}
}
