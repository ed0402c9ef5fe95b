// Package bounded has the queue of work that is left to another goroutine and may be lost: no caller waits for room in
// it. One that wakes another goroutine has room for one value.
//
// Some queues of the project are of another kind. They bound bytes (spool, spill, peers' frames), drop the oldest
// (decisions), have their sender wait (kvevents), hand many records to a guest in one piece (host's notices), or belong
// to a library (tracing).
package bounded

import "iter"

// Queue is a channel with a buffer, which bounds it.
type Queue[T any] chan T

// Put adds a value, and reports whether there was room for it. It never waits. The caller counts what is lost, if that
// is asked for.
func (q Queue[T]) Put(v T) bool {
	select {
	case q <- v:
		return true
	default:
		return false
	}
}

// Waiting takes values out until none waits, or until it has taken so many. The queue is not closed.
func (q Queue[T]) Waiting(most int) iter.Seq[T] {
	return func(yield func(T) bool) {
		for range most {
			select {
			case v := <-q:
				if !yield(v) {
					return
				}
			default:
				return
			}
		}
	}
}
