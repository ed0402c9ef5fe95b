// Package pile is a heap whose elements know their places in it, so that one can be moved or taken out.
package pile

import "container/heap"

// Ranked is what a pile has: it comes before others, and keeps its place, one more than its index; 0 = it is in none.
type Ranked[T any] interface {
	comparable
	Before(other T) bool
	Place() *int
}

// Pile is a heap: its element 0 comes before all others. Its zero value is empty.
type Pile[T Ranked[T]] []T

// Len implements heap.Interface.
func (p Pile[T]) Len() int { return len(p) }

// Less implements heap.Interface.
func (p Pile[T]) Less(i, j int) bool { return p[i].Before(p[j]) }

// Swap implements heap.Interface.
func (p Pile[T]) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	*p[i].Place() = i + 1
	*p[j].Place() = j + 1
}

// Push implements heap.Interface.
func (p *Pile[T]) Push(x any) {
	*p = append(*p, x.(T))
	*x.(T).Place() = len(*p)
}

// Pop implements heap.Interface.
func (p *Pile[T]) Pop() any {
	n := len(*p) - 1
	x := (*p)[n]
	clear((*p)[n:])
	*p = (*p)[:n]
	*x.Place() = 0
	return x
}

// Put takes x in, or finds its place anew.
func (p *Pile[T]) Put(x T) {
	if i := *x.Place(); i > 0 {
		heap.Fix(p, i-1)
	} else {
		heap.Push(p, x)
	}
}

// Drop takes x out if it is there.
func (p *Pile[T]) Drop(x T) {
	if i := *x.Place(); i > 0 {
		heap.Remove(p, i-1)
	}
}
