package queue

import "container/heap"

// ranked is what a pile has: it comes before others, and keeps its place, one more than its index; 0 = it is in none.
type ranked[T any] interface {
	comparable
	before(other T) bool
	place() *int
}

// pile is a heap.
type pile[T ranked[T]] []T

// Len implements heap.Interface.
func (p pile[T]) Len() int { return len(p) }

// Less implements heap.Interface.
func (p pile[T]) Less(i, j int) bool { return p[i].before(p[j]) }

// Swap implements heap.Interface.
func (p pile[T]) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	*p[i].place() = i + 1
	*p[j].place() = j + 1
}

// Push implements heap.Interface.
func (p *pile[T]) Push(x any) {
	*p = append(*p, x.(T))
	*x.(T).place() = len(*p)
}

// Pop implements heap.Interface.
func (p *pile[T]) Pop() any {
	n := len(*p) - 1
	x := (*p)[n]
	clear((*p)[n:])
	*p = (*p)[:n]
	*x.place() = 0
	return x
}

// put takes x in, or finds its place anew.
func (p *pile[T]) put(x T) {
	if i := *x.place(); i > 0 {
		heap.Fix(p, i-1)
	} else {
		heap.Push(p, x)
	}
}

// drop takes x out if it is there.
func (p *pile[T]) drop(x T) {
	if i := *x.place(); i > 0 {
		heap.Remove(p, i-1)
	}
}
