package probe_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// load makes model the one that the workers list from now on, slow after a question.
func (f *fleet) load(model string, slow time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.models, f.slow = model, slow
}

// TestListSoonIsAtOnce: a list that is asked for comes at once, not after five health checks.
func TestListSoonIsAtOnce(t *testing.T) {
	play(t, 2, func(f *fleet) {
		time.Sleep(time.Second)
		f.load("adapter", 0)
		if got := f.serving("adapter"); got != "lacks the model" {
			t.Fatalf("before: %s", got)
		}
		f.prober.ListSoon(2)
		if got := f.serving("adapter"); got != "w1" {
			t.Errorf("the second was asked: %s; want it alone", got)
		}
	})
}

// TestListSoonDoesNotFlood: however many requests ask for it, a worker is asked for its models at most five times a
// second, and it costs no health check.
func TestListSoonDoesNotFlood(t *testing.T) {
	play(t, 1, func(f *fleet) {
		time.Sleep(time.Second)
		before, checks := f.count("w0/v1/models"), f.count("w0/health")
		for range 1000 {
			f.prober.ListSoon(1)
			time.Sleep(time.Millisecond)
		}
		if n := f.count("w0/v1/models") - before; n < 4 || n > 6 {
			t.Errorf("%d listings in a second; want about 5", n)
		}
		if n := f.count("w0/health") - checks; n > 1 {
			t.Errorf("%d health checks in that second; want 1 at most", n)
		}
	})
}

// TestListSoonDuringAReading: the answer on its way may be older than the call, so another reading follows it.
func TestListSoonDuringAReading(t *testing.T) {
	play(t, 1, func(f *fleet) {
		time.Sleep(time.Second)
		f.load("old", 500*time.Millisecond)
		f.prober.ListSoon(1)
		time.Sleep(100 * time.Millisecond)
		f.load("adapter", 0)
		f.RenewLists(time.Now())
		time.Sleep(450 * time.Millisecond)
		if got := f.serving("old"); got != "w0" || f.Renewing() != 1 {
			t.Fatalf("after the first answer: %s, %d to come; want w0, 1", got, f.Renewing())
		}
		time.Sleep(200 * time.Millisecond)
		if got := f.serving("adapter"); got != "w0" || f.Renewing() != 0 {
			t.Errorf("after the second: %s, %d to come; want w0, 0", got, f.Renewing())
		}
	})
}

// TestListSoonAtABusyWorker: a worker that answers its health checks late may still list its models.
func TestListSoonAtABusyWorker(t *testing.T) {
	play(t, 1, func(f *fleet) {
		f.set("w0/health", nil)
		time.Sleep(2500 * time.Millisecond) // in a check that hangs
		f.load("adapter", 0)
		f.prober.ListSoon(1)
		synctest.Wait()
		if got := f.Stats(time.Now())[0].Models; len(got) != 1 || got[0] != "adapter" {
			t.Errorf("it lists %v; want adapter", got)
		}
	})
}

// TestListSoonOfNobody: a number that is not watched is asked nothing.
func TestListSoonOfNobody(t *testing.T) {
	play(t, 1, func(f *fleet) {
		before := f.count("w0/v1/models")
		f.prober.ListSoon(99)
		f.prober.Unwatch(1)
		f.prober.ListSoon(1)
		time.Sleep(time.Minute)
		if n := f.count("w0/v1/models") - before; n != 0 {
			t.Errorf("%d listings; want none", n)
		}
	})
}
