package sagemaker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func ok(body string) Result { return Result{OK: true, Status: 200, Body: []byte(body)} }

// mustDo runs an attempt whose open takes a time.
func mustDo(t *testing.T, o *Opens, id string, takes time.Duration, r Result) (got Result, replayed bool) {
	t.Helper()
	got, replayed, err := o.Do(t.Context(), id, func() Result { time.Sleep(takes); return r })
	if err != nil {
		t.Error(err)
	}
	return got, replayed
}

func TestARepeatGetsTheFirstResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Opens
		f := func(id string, r Result, want string, again bool) {
			t.Helper()
			if got, replayed := mustDo(t, &o, id, 0, r); string(got.Body) != want || replayed != again {
				t.Fatalf("%q: %s, replayed %v; want %s, %v", id, got.Body, replayed, want, again)
			}
		}
		f("a", ok("1"), "1", false)
		f("a", ok("2"), "1", true)
		f("b", ok("3"), "3", false)
		f("", ok("4"), "4", false)
		f("", ok("5"), "5", false)
		f("c", Result{Body: []byte("failed")}, "failed", false)
		f("c", ok("6"), "6", false)
		time.Sleep(keepResult - time.Nanosecond)
		f("a", ok("7"), "1", true) // a replay does not prolong it
		time.Sleep(time.Nanosecond)
		f("a", ok("8"), "8", false)
		if o.done.Len() != 1 || o.bytes != 1+resultExtra {
			t.Fatalf("%d results of %d bytes are kept; want 1 of %d", o.done.Len(), o.bytes, 1+resultExtra)
		}
	})
}

func TestOneAttemptRunsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Opens
		var running, ran, replays atomic.Int32
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				r, replayed, err := o.Do(t.Context(), "id", func() Result {
					if running.Add(1) != 1 {
						t.Error("two attempts run at once")
					}
					defer running.Add(-1)
					time.Sleep(time.Second)
					if ran.Add(1) < 3 {
						return Result{Status: 503}
					}
					return ok("third")
				})
				if replayed {
					replays.Add(1)
				}
				if err != nil || r.OK != (string(r.Body) == "third") {
					t.Errorf("attempt %d: %+v, %v", i, r, err)
				}
			})
		}
		began := time.Now()
		wg.Wait()
		if ran.Load() != 3 || replays.Load() != 2 || time.Since(began) != 3*time.Second {
			t.Fatalf("%d ran, %d replays, in %v; want 3, 2, 3 s", ran.Load(), replays.Load(), time.Since(began))
		}
	})
}

func TestAWaitingAttemptCanLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Opens
		go mustDo(t, &o, "id", time.Minute, ok("first"))
		synctest.Wait()
		gone := errors.New("the client left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		_, replayed, err := o.Do(ctx, "id", func() Result { t.Error("a second attempt ran"); return Result{} })
		if !errors.Is(err, gone) || replayed {
			t.Fatalf("replayed %v, %v", replayed, err)
		}
		if r, replayed := mustDo(t, &o, "id", 0, ok("third")); !replayed || string(r.Body) != "first" {
			t.Fatalf("%s, replayed %v", r.Body, replayed)
		}
	})
}

func TestAPanicLetsTheNextTry(t *testing.T) {
	var o Opens
	func() {
		defer func() { _ = recover() }()
		_, _, _ = o.Do(t.Context(), "id", func() Result { panic("x") })
	}()
	if r, replayed := mustDo(t, &o, "id", 0, ok("second")); replayed || string(r.Body) != "second" {
		t.Fatalf("%s, replayed %v", r.Body, replayed)
	}
}

func TestBounds(t *testing.T) {
	var o Opens
	mustDo(t, &o, "too large", 0, Result{OK: true, Body: make([]byte, maxOneKept)})
	check := func(what string, ok bool) {
		t.Helper()
		if !ok || o.done.Len() != len(o.byID) {
			t.Fatalf("%s: %d results of %d bytes are kept, %d by id", what, o.done.Len(), o.bytes, len(o.byID))
		}
	}
	check("a result that is too large", o.done.Len() == 0)
	for i := range 4 * maxKept / maxOneKept {
		mustDo(t, &o, fmt.Sprint("large ", i), 0, Result{OK: true, Header: [][2]string{{"name", "value"}}, Body: make([]byte, maxOneKept/2)})
	}
	check("large results", o.bytes <= maxKept && o.done.Len() >= 2)
	for i := range maxResults + 10 {
		mustDo(t, &o, fmt.Sprint(i), 0, Result{OK: true})
	}
	check("many results", o.done.Len() == maxResults && o.bytes == maxResults*resultExtra)
	if _, replayed := mustDo(t, &o, fmt.Sprint(maxResults+9), 0, Result{}); !replayed {
		t.Fatal("the newest is gone")
	}
	if _, replayed := mustDo(t, &o, "0", 0, Result{}); replayed {
		t.Fatal("the oldest is still there")
	}
}

func TestHammerOpens(t *testing.T) {
	var o Opens
	var opened [20]atomic.Int32
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				id := (i * (g + 1)) % len(opened)
				r, _, err := o.Do(t.Context(), fmt.Sprint(id), func() Result {
					return Result{OK: opened[id].Add(1) > 3, Status: 200}
				})
				if err != nil || r.Status != 200 {
					t.Error(r, err)
				}
			}
		})
	}
	wg.Wait()
	for id := range opened {
		if n := opened[id].Load(); n > 4 {
			t.Errorf("%d opened %d times; want three failures and one success", id, n)
		}
	}
}
