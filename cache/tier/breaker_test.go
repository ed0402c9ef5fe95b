package tier

import (
	"testing"
	"testing/synctest"
	"time"
)

// Five failures in a row open the breaker, once the first of them is 150 ms ago.
func TestBreaker(t *testing.T) {
	f := func(what string, steps func(fail func(n int, every time.Duration), b *breaker), open bool, opened uint64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var b breaker
			fail := func(n int, every time.Duration) {
				for range n {
					b.failure()
					time.Sleep(every)
				}
			}
			steps(fail, &b)
			if b.open.Load() != open || b.opened() != opened || (b.openFor() > 0) != open {
				t.Errorf("%s: open %v, %d times, for %v; want %v, %d", what, b.open.Load(), b.opened(), b.openFor(), open, opened)
			}
		})
	}
	const ms = time.Millisecond
	f("four failures", func(fail func(int, time.Duration), _ *breaker) { fail(4, time.Second) }, false, 0)
	f("five failures", func(fail func(int, time.Duration), _ *breaker) { fail(5, time.Second) }, true, 1)
	f("a burst", func(fail func(int, time.Duration), _ *breaker) { fail(100, ms) }, false, 0)
	f("a long burst", func(fail func(int, time.Duration), _ *breaker) { fail(151, ms) }, true, 1)
	f("a success between", func(fail func(int, time.Duration), b *breaker) {
		fail(4, time.Second)
		b.success()
		fail(4, time.Second)
	}, false, 0)
	f("closed again", func(fail func(int, time.Duration), b *breaker) {
		fail(5, time.Second)
		if lasted := b.close(); lasted != time.Second {
			t.Errorf("it was open for %v", lasted)
		}
		fail(4, time.Second)
	}, false, 1)
	f("open already", func(fail func(int, time.Duration), _ *breaker) { fail(20, time.Second) }, true, 1)
	f("twice", func(fail func(int, time.Duration), b *breaker) {
		fail(5, time.Second)
		b.close()
		fail(5, time.Second)
	}, true, 2)
}
