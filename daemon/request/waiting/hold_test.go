package waiting

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/request/queue"
)

// A request that is held has the turn when its hold is over, and earlier if room may have come; others go before it.
func TestAHoldEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{Config: queue.Config{MaxRequests: 10, MaxBytes: 1 << 30}, Wait: time.Minute})
		if got := q.MayHold(); got != 59*time.Second {
			t.Errorf("held for %v at most; want a second less than it waits", got)
		}
		began := time.Now()
		a, b := &Wait{Request: queue.Request{Key: "a"}}, &Wait{Request: queue.Request{Key: "b"}}
		if !q.Enter(a, false, began) || !a.AtOnce() {
			t.Fatal("a has no turn")
		}
		a.Hold(time.Second, began)
		if !q.Enter(b, false, began) || !b.AtOnce() {
			t.Fatal("a that is held blocks b")
		}
		b.Served(began)
		asked := 0
		for time.Since(began) < time.Second { // each 50 ms, as nothing else happens
			if news := a.Await(context.Background()); news != Turn {
				t.Fatalf("%v; want the turn", news)
			}
			asked++
			if time.Since(began) < time.Second {
				a.Hold(time.Second, time.Now())
			}
		}
		if asked < 15 || asked > 21 || time.Since(began) > 1100*time.Millisecond {
			t.Errorf("asked %d times in %v; want 20 in a second", asked, time.Since(began))
		}
		a.Hold(2*time.Second, time.Now())
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for news := a.Await(ctx); news != Gone; news = a.Await(ctx) {
			a.Hold(2*time.Second, time.Now())
		}
		if q.Depth() != 0 {
			t.Errorf("%d wait after the client left", q.Depth())
		}
		time.Sleep(time.Second) // the last tick
	})
}

// A hold that Wake does not reach, as many are held, ends all the same on time.
func TestAHoldEndsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{Config: queue.Config{MaxRequests: 1000, MaxBytes: 1 << 30}, Wait: 4 * time.Second})
		if got := q.MayHold(); got != 3*time.Second {
			t.Errorf("held for %v at most; want three quarters of a short wait", got)
		}
		began := time.Now()
		done := make(chan time.Duration)
		for range 500 {
			w := &Wait{}
			if !q.Enter(w, false, began) || !w.AtOnce() {
				t.Fatal("no turn")
			}
			w.Hold(q.MayHold(), began)
			go func() {
				for w.Await(context.Background()) == Turn {
					if at := time.Now(); at.Sub(began) < q.MayHold() {
						w.Hold(q.MayHold(), at)
						continue
					}
					w.Served(time.Now())
					done <- time.Since(began)
					return
				}
				done <- -1
			}()
		}
		for range 500 {
			if took := <-done; took < 3*time.Second || took > 3200*time.Millisecond {
				t.Fatalf("served after %v; want 3 s", took)
			}
		}
		time.Sleep(time.Second)
	})
}
