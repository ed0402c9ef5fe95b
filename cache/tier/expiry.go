package tier

import (
	"container/heap"
	"runtime"
)

// expiry orders entries by the time at which the sweep has to look at them. A longer life leaves an entry where it is (the
// sweep finds it alive and puts it back), so that a touch costs nothing here. The zero value is ready; the lock of memory
// guards it.
type expiry struct{ h byDue }

func (x *expiry) push(e *entry)   { heap.Push(&x.h, e) }
func (x *expiry) remove(e *entry) { heap.Remove(&x.h, e.at) }
func (x *expiry) fix(e *entry)    { heap.Fix(&x.h, e.at) }

// gone is the place of an entry that was removed.
const gone = -1

// byDue is the heap itself.
type byDue []*entry

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due < h[j].due }
func (h byDue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *byDue) Push(e any) {
	e.(*entry).at = len(*h)
	*h = append(*h, e.(*entry))
}

func (h *byDue) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	e.at = gone
	*h = (*h)[:last]
	return e
}

// sweepStep is how many entries one hold of the lock looks at.
const sweepStep = 512

// sweep removes what is expired, in steps between which others get the lock.
func (m *memory) sweep(now int64) {
	for more := true; more; {
		more = m.sweepSome(now)
		runtime.Gosched() // as in Each
	}
}

func (m *memory) sweepSome(now int64) (more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range sweepStep {
		if len(m.due.h) == 0 || m.due.h[0].due > now {
			return false
		}
		e := m.due.h[0]
		if e.expires <= now {
			m.expireNow(e)
			continue
		}
		e.due = e.expires
		m.due.fix(e)
	}
	return true
}
