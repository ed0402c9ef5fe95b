package tier

import "container/heap"

// expiry orders entries by the time at which the sweep must look at them. An entry whose life is prolonged keeps its
// place, so that a touch costs nothing here: the sweep finds it alive and puts it back.
type expiry struct{ h byDue }

func (x *expiry) push(e *entry)   { heap.Push(&x.h, e) }
func (x *expiry) remove(e *entry) { heap.Remove(&x.h, e.at) }

// first returns the entry that is due first; nil if there is none.
func (x *expiry) first() *entry {
	if len(x.h) == 0 {
		return nil
	}
	return x.h[0]
}

// reorder moves an entry to the place of another time.
func (x *expiry) reorder(e *entry, due int64) {
	e.due = due
	heap.Fix(&x.h, e.at)
}

// gone is the place of an entry that was removed.
const gone = -1

// byDue is the heap itself.
type byDue []*entry

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due < h[j].due }
func (h byDue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at = i
	h[j].at = j
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
