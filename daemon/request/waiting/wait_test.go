package waiting

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/request/queue"
)

func conf(most int, wait, empty time.Duration) Config {
	return Config{Config: queue.Config{MaxRequests: most, MaxBytes: 1 << 30}, Wait: wait, WaitEmpty: empty}
}

// left fails if anything of the waits is left.
func (q *Queue) left(t *testing.T) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.Depth() != 0 || len(q.lanes) != 0 || q.apart.Load() != 0 {
		t.Errorf("%d wait, in %d lanes, %d of them for a limit", q.Depth(), len(q.lanes), q.apart.Load())
	}
}

// TestHowWaitsEnd is the table of the ways in which a wait ends, and when.
func TestHowWaitsEnd(t *testing.T) {
	const wait, empty = 10 * time.Second, 4 * time.Second
	f := func(about string, want News, after time.Duration, do func(*Queue, *Wait, context.CancelFunc)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			q, began := New(conf(1, wait, empty)), time.Now()
			p := &Wait{}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if !q.Enter(p, false, began) || !p.AtOnce() {
				t.Fatal("the first has no turn")
			}
			p.Blocked(false, began)
			if do != nil {
				go do(q, p, leave)
			}
			got := p.Await(ctx)
			for got == Turn && (want != Turn || time.Since(began) < after) { // the tick gives it the turn again and again
				p.Blocked(false, time.Now())
				got = p.Await(ctx)
			}
			if took := time.Since(began); got != want || took < after || took > after+wakeEvery {
				t.Errorf("%s: news %d after %v; want %d after %v", about, got, took, want, after)
			}
			p.Leave(time.Now())
			p.Leave(time.Now())
			q.left(t)
			time.Sleep(time.Second) // the last tick
		})
	}
	f("no room", Late, wait, nil)
	f("its client leaves", Gone, time.Second, func(_ *Queue, _ *Wait, leave context.CancelFunc) {
		time.Sleep(time.Second)
		leave()
	})
	f("one of a higher class takes its place", Full, time.Second, func(q *Queue, _ *Wait, _ context.CancelFunc) {
		time.Sleep(time.Second + wakeEvery/2)
		other := &Wait{Request: queue.Request{Class: 1}}
		if !q.Enter(other, false, time.Now()) {
			t.Error("there is no place for a higher class")
		}
		other.Leave(time.Now())
	})
	f("room comes", Turn, time.Second, func(q *Queue, _ *Wait, _ context.CancelFunc) {
		time.Sleep(time.Second)
		q.MayHaveCome()
	})
}

// A wait is shorter by what it has waited before, ends at its deadline, and counts anew from when the last worker goes.
func TestHowLongWaitsLast(t *testing.T) {
	f := func(p *Wait, empty bool, goes, want time.Duration, why News) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			q, began := New(conf(9, 10*time.Second, 4*time.Second)), time.Now()
			if p.Cost > 0 { // so many seconds
				p.Deadline = began.Add(time.Duration(p.Cost) * time.Second)
			}
			q.Enter(p, empty, began)
			if goes > 0 {
				q.found(p, true, began.Add(goes))
			}
			if at, got := q.end(p); at.Sub(began) != want || got != why {
				t.Errorf("it ends after %v with news %d; want %v and %d", at.Sub(began), got, want, why)
			}
			p.Leave(began)
			q.left(t)
			time.Sleep(time.Second)
		})
	}
	f(&Wait{}, false, 0, 10*time.Second, Late)
	f(&Wait{}, true, 0, 4*time.Second, Empty)
	f(&Wait{}, false, 3*time.Second, 7*time.Second, Empty)
	f(&Wait{}, false, 12*time.Second, 14*time.Second, Empty) // both together bound it
	f(&Wait{Before: 7 * time.Second}, false, 0, 3*time.Second, Late)
	f(&Wait{Before: time.Minute}, false, 0, 0, Late)
	f(&Wait{Request: queue.Request{Cost: 2}}, false, 0, 2*time.Second, Overdue)
}

// TestWaitsTogether: whatever the owners of many waits do at once, one has the turn at a time, and nothing is left.
func TestWaitsTogether(t *testing.T) {
	q := New(conf(30, time.Minute, time.Minute))
	var turns, served atomic.Int64
	var all sync.WaitGroup
	for g := range 40 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(g)))
			for range 150 {
				p := &Wait{Request: queue.Request{Lane: r.Uint64N(3), Class: r.IntN(3), Limited: g%4 == 0}}
				ctx, leave := context.WithTimeout(context.Background(), time.Duration(r.IntN(3000))*time.Microsecond)
				if q.Enter(p, false, time.Now()) {
					for p.Await(ctx) == Turn {
						if turns.Add(1) != 1 {
							t.Error("two have the turn")
						}
						turns.Add(-1)
						if r.IntN(3) > 0 {
							p.Served(time.Now())
							served.Add(1)
							break
						}
						p.Blocked(r.IntN(2) == 0, time.Now())
					}
				}
				p.Leave(time.Now())
				leave()
				if r.IntN(4) == 0 {
					q.MayHaveCome()
				}
			}
		})
	}
	all.Wait()
	q.left(t)
	if served.Load() < 100 {
		t.Errorf("only %d were served", served.Load())
	}
}
