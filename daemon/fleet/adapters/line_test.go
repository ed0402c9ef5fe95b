package adapters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// loaded returns the names that the worker was to load, in order, and forgets its calls.
func (e *engine) loaded() (names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.calls {
		var verb, name string
		_, _ = fmt.Sscan(c, &verb, &name)
		if verb == "load" {
			names = append(names, name)
		}
	}
	e.calls = nil
	return names
}

// crowd has clients that come a millisecond after each other, each for an adapter that it uses for a while.
type crowd struct {
	sync.WaitGroup
	t    *testing.T
	s    *Source
	w    *worker.Worker
	uses time.Duration
}

func (c *crowd) comes(caller, name string) {
	c.Go(func() {
		release, err := c.s.wantFor(c.t.Context(), c.w, name, caller)
		if err != nil {
			c.t.Errorf("%s for %q: %v", name, caller, err)
			return
		}
		time.Sleep(c.uses)
		release()
	})
	time.Sleep(time.Millisecond)
}

// TestAllGetSlots: more adapters at once than max are loaded one after the other, in order of arrival, and at no time
// has the worker more than max.
func TestAllGetSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{status: 200, takes: 100 * time.Millisecond}
		s, w := loads(e, 2)
		c := crowd{t: t, s: s, w: w, uses: 200 * time.Millisecond}
		began := time.Now()
		for i := range 12 {
			c.comes("", fmt.Sprint("a", i))
		}
		c.comes("", "a11") // joins the load that waits
		c.Wait()
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("12 adapters took %s", took)
		}
		have, most := 0, 0
		for _, call := range e.calls {
			if call[0] == 'l' {
				have++
			} else {
				have--
			}
			most = max(most, have)
		}
		got := e.loaded()
		if len(got) != 12 || most != 2 {
			t.Errorf("%d loads, at most %d adapters at a time; want 12 and 2", len(got), most)
		}
		for i := range 12 { // two that get their slots at one moment may change places
			if at := slices.Index(got, fmt.Sprint("a", i)); at < i-1 || at > i+1 {
				t.Errorf("a%d is number %d of those that were loaded", i, at)
			}
		}
		if len(s.lines) > 0 || len(s.loads) > 0 {
			t.Errorf("left: %v, %v", s.lines, s.loads)
		}
	})
}

// TestKeysTakeTurns: a key with many names does not keep another one out.
func TestKeysTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{status: 200, takes: 100 * time.Millisecond}
		s, w := loads(e, 1)
		c := crowd{t: t, s: s, w: w, uses: 100 * time.Millisecond}
		for i := range 8 {
			c.comes("greedy", fmt.Sprint("g", i))
		}
		c.comes("other", "o0")
		c.comes("other", "o1")
		c.comes("third", "g7") // which then comes before g2
		c.Wait()
		want := []string{"g0", "g1", "g7", "o0", "g2", "o1", "g3", "g4", "g5", "g6"}
		if got := e.loaded(); !slices.Equal(got, want) {
			t.Errorf("loaded %v; want %v", got, want)
		}
	})
}

// TestTheLineIsBounded: by key, so that others find a place; and who leaves gives the place up.
func TestTheLineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := loads(&engine{status: 200}, 1)
		release, err := s.want(t.Context(), w, "held")
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		refused := 0
		for i := range maxWaiting {
			all.Go(func() {
				if _, err := s.wantFor(ctx, w, fmt.Sprint("n", i), "greedy"); errors.Is(err, ErrFull) {
					refused++ // one at a time: the bubble's goroutines are woken one after the other
				}
			})
			synctest.Wait()
		}
		all.Go(func() {
			if _, err := s.wantFor(t.Context(), w, "other", "other"); err != nil {
				t.Errorf("another key: %v", err)
			}
		})
		synctest.Wait()
		if n := len(s.lines[w.URL()].waiting); refused != maxWaiting/2 || n != maxWaiting/2+1 {
			t.Errorf("%d were refused, and %d wait", refused, n)
		}
		leave()
		synctest.Wait()
		if n := len(s.lines[w.URL()].waiting); n != 1 || len(s.loads) != 1 {
			t.Errorf("%d wait after the others left, of %d loads", n, len(s.loads))
		}
		release()
		all.Wait()
	})
}

// TestNothingIsUnloadedForNobody: an idle adapter stays until a load has its slot.
func TestNothingIsUnloadedForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{status: 200}
		s, w := loads(e, 2)
		for _, name := range []string{"a", "b"} {
			release, err := s.want(t.Context(), w, name)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
		}
		e.loaded()
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := s.want(ctx, w, "c"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		e.wants(t, "its client has left")
	})
}

// TestADownWorkerGivesNoSlot: who waits there is sent on.
func TestADownWorkerGivesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := loads(&engine{status: 200}, 1)
		release, err := s.want(t.Context(), w, "held")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		time.AfterFunc(time.Second, func() { s.workers.Update(nil, time.Now()) })
		began := time.Now()
		if _, err := s.want(t.Context(), w, "a"); !errors.Is(err, errFailed) || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
