package front

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTrafficIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r traffic
		first, second := r.begin(), r.begin()
		r.end(first)
		r.beginDrain()
		began := time.Now()
		if n := r.awaitNone(began.Add(time.Second)); n != 1 || time.Since(began) != time.Second {
			t.Errorf("%d are left after %v; want 1 after 1s", n, time.Since(began))
		}
		time.AfterFunc(time.Second, func() { r.end(second) })
		if n := r.awaitNone(began.Add(time.Minute)); n != 0 || time.Since(began) > 3*time.Second {
			t.Errorf("%d are left after %v; want 0 after 2s", n, time.Since(began))
		}
		if late := r.endedLate.Load(); late != 1 {
			t.Errorf("%d ended in the drain; want 1", late)
		}
		if wait := r.park(nil, time.Minute); wait != grace {
			t.Errorf("a connection whose answer ended in a drain may wait %v for a request; want %v", wait, grace)
		}
	})
}
