package evict

import "fmt"

// Policy orders items. An item is in at most one policy, and only once.
type Policy[T any] interface {
	Add(*Item[T])    // it is new
	Touch(*Item[T])  // it was read
	Remove(*Item[T]) // it was deleted, has expired or was replaced; no effect if it is in no policy

	// Victim removes and returns the first item in the order of eviction for which free is true. nil = there is none.
	Victim(free func(*Item[T]) bool) *Item[T]
}

// Names lists the policies, the default first.
var Names = []string{"lru", "s3fifo", "fifo"}

// New returns an empty policy of that name.
func New[T any](name string) (Policy[T], error) {
	switch name {
	case "lru", "fifo":
		q := &queue[T]{touch: name == "lru"}
		q.items.init()
		return q, nil
	case "s3fifo":
		return newS3FIFO[T](), nil
	}
	return nil, fmt.Errorf("evict: there is no policy %q; known here: %v", name, Names)
}

// queue evicts the oldest item (fifo), or the one that was read or added longest ago (lru).
type queue[T any] struct {
	items list[T]
	touch bool // a read counts as new
}

func (q *queue[T]) Add(i *Item[T]) { q.items.pushFront(i) }

func (q *queue[T]) Touch(i *Item[T]) {
	if q.touch && i.in != nil {
		q.items.toFront(i)
	}
}

func (q *queue[T]) Remove(i *Item[T]) {
	if i.in != nil {
		q.items.remove(i)
	}
}

func (q *queue[T]) Victim(free func(*Item[T]) bool) *Item[T] { return q.items.takeBack(free) }
