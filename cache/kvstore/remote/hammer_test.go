package remote

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestQueueHammer: the jobs of a key leave in their order, none is lost, and the queue holds no more than its bytes.
func TestQueueHammer(t *testing.T) {
	const keys, most = 32, 4000
	q := newQueue(most)
	var pushed, done atomic.Int64
	var out, in sync.WaitGroup
	for _, lane := range q.lanes {
		out.Go(func() {
			last := map[string]uint64{}
			for j := range lane {
				if j.order <= last[j.key] {
					t.Errorf("%s: job %d comes after %d", j.key, j.order, last[j.key])
				}
				last[j.key] = j.order
				if n := q.waiting(); n > most || !q.has(j.key) {
					t.Errorf("%d bytes wait, %s is under way: %v", n, j.key, q.has(j.key))
				}
				q.done(j)
				done.Add(1)
			}
		})
	}
	for g := range 4 {
		in.Go(func() {
			for order := range uint64(4000) {
				key := fmt.Sprint(g, " of ", order%keys) // a key's jobs come from one goroutine
				if q.push(&job{key: key, order: order + 1, size: int64(order % 700)}) {
					pushed.Add(1)
				}
			}
		})
	}
	in.Wait()
	q.close()
	out.Wait()
	if pushed.Load() == 0 || pushed.Load() != done.Load() || q.bytes != 0 || len(q.jobs) != 0 {
		t.Errorf("%d jobs were pushed and %d done; %d bytes and %d keys are left", pushed.Load(), done.Load(), q.bytes, len(q.jobs))
	}
}

// TestIndexHammer: a fact stays whole, and is its key's, while others are added, forgotten and found missing.
func TestIndexHammer(t *testing.T) {
	x := newIndex()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				m, at := mark(i%97), now()
				switch i % 5 {
				case 0, 1:
					x.add(m, fact{size: int64(m), ends: at.Add(time.Hour).UnixMilli() * 100})
				case 2:
					if f, ok := x.find(m, at); ok && f.size != int64(m) {
						t.Errorf("the fact of %d is that of %d", m, f.size)
					}
				case 3:
					x.miss(m, at)
					x.missed(m, at)
				default:
					x.lose(m, at)
					x.forget(m)
				}
				if n := x.length(); n > 97 {
					t.Errorf("%d facts of 97 values", n)
				}
			}
		})
	}
	all.Wait()
	x.add(1, fact{size: 1})
	if _, ok := x.find(1, now()); !ok || x.missed(1, now()) {
		t.Error("a value that was just added is not there")
	}
}
