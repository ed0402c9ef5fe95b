package bounded

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestQueue puts the first letters of the alphabet into a queue of three, takes some out, and puts more.
func TestQueue(t *testing.T) {
	for _, c := range []struct {
		what            string
		put, take, more int
		taken, left     string
	}{
		{what: "nothing", take: 2},
		{what: "some", put: 2, left: "ab"},
		{what: "as many as there is room for", put: 3, left: "abc"},
		{what: "what finds it full is lost", put: 5, left: "abc"},
		{what: "the first come out first", put: 3, take: 2, taken: "ab", left: "c"},
		{what: "no more come out than wait", put: 2, take: 9, taken: "ab"},
		{what: "what left makes room", put: 4, take: 1, more: 2, taken: "a", left: "bce"},
	} {
		q, next := make(Queue[byte], 3), byte('a')
		put := func(n int) {
			for range n {
				before := len(q)
				if q.Put(next) != (before < 3) {
					t.Errorf("%s: Put beside %d others says %v", c.what, before, before == 3)
				}
				next++
			}
		}
		put(c.put)
		taken := slices.Collect(q.Waiting(c.take))
		put(c.more)
		close(q)
		var rest []byte
		for v := range q {
			rest = append(rest, v)
		}
		if string(taken) != c.taken || string(rest) != c.left {
			t.Errorf("%s: took %q, left %q; want %q, %q", c.what, taken, rest, c.taken, c.left)
		}
	}
}

// TestWaitingStops: a value that nobody asked for stays in the queue.
func TestWaitingStops(t *testing.T) {
	q := make(Queue[int], 4)
	for i := range 4 {
		q.Put(i)
	}
	for range q.Waiting(4) {
		break
	}
	if got := slices.Collect(q.Waiting(4)); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("%v are left", got)
	}
}

// TestHammer: each value comes out once, or is refused, while many put and two take in both ways.
func TestHammer(t *testing.T) {
	const puts, each = 8, 5000
	q := make(Queue[int], 16)
	var seen [puts * each]atomic.Int32
	var putting, taking sync.WaitGroup
	done := make(chan struct{})
	var refused atomic.Int64
	for p := range puts {
		putting.Go(func() {
			for i := range each {
				if !q.Put(p*each + i) {
					refused.Add(1)
				}
			}
		})
	}
	for range 2 {
		taking.Go(func() {
			for {
				select {
				case <-done:
					return
				case v := <-q:
					seen[v].Add(1)
				}
				for v := range q.Waiting(4) {
					seen[v].Add(1)
				}
			}
		})
	}
	putting.Wait()
	close(done)
	taking.Wait()
	for v := range q.Waiting(16) {
		seen[v].Add(1)
	}
	came := int64(0)
	for v := range seen {
		n := seen[v].Load()
		if n > 1 {
			t.Fatalf("value %d came %d times", v, n)
		}
		came += int64(n)
	}
	if came+refused.Load() != puts*each || came == 0 || refused.Load() == 0 {
		t.Errorf("%d of %d came, %d were refused", came, puts*each, refused.Load())
	}
}
