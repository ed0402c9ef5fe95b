package host

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A strategy that fails whenever it is tried again is tried less and less often. One good answer starts the pauses
// anew.
func TestTriesInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quarantine{after: 2, pause: time.Second, started: time.Now(), lines: new(limiter),
			lastErr: new(atomic.Pointer[string])}
		q.log = slog.New(slog.NewTextHandler(io.Discard, nil))
		q.failed(trap, errors.New("one"), false)
		if q.on() {
			t.Fatal("one error set the strategy aside")
		}
		q.failed(trap, errors.New("two"), false)
		for n, want := range []time.Duration{1, 2, 4, 8, 10, 10, 10} {
			if q.admit() {
				t.Fatalf("pause %d: a pick was admitted at once", n)
			}
			time.Sleep(want*time.Second - time.Millisecond)
			if q.admit() {
				t.Errorf("pause %d: a pick was admitted before %d s", n, want)
			}
			time.Sleep(time.Millisecond)
			if !q.admit() {
				t.Errorf("pause %d: no pick was admitted after %d s", n, want)
			}
			if q.admit() {
				t.Errorf("pause %d: two picks were admitted", n)
			}
			q.failed(trap, errors.New("in vain"), false)
		}
		time.Sleep(10 * time.Second)
		if !q.admit() || !q.succeeded() || q.on() || q.wait() != time.Second {
			t.Errorf("after a good answer it is set aside: %v, the next time for %v", q.on(), q.wait())
		}
	})
}

// Picks that end well at the same time count a slow one down to 0 and no further.
func TestSlowPicksAreMadeUpFor(t *testing.T) {
	for range 10_000 {
		q := quarantine{after: 5, pause: time.Second, started: time.Now(), log: slog.New(slog.DiscardHandler),
			lines: new(limiter), lastErr: new(atomic.Pointer[string])}
		q.tookLong("slow", time.Millisecond)
		var all sync.WaitGroup
		begin := make(chan struct{})
		for range 4 {
			all.Go(func() {
				<-begin
				for range 100 * slowPicks {
					q.succeeded()
				}
			})
		}
		close(begin)
		all.Wait()
		if n := q.slow.Load(); n != 0 {
			t.Fatalf("slow is %d; want 0", n)
		}
	}
}
