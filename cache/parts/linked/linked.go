// Package linked is a list of things that know their neighbours themselves, so that it allocates nothing. A thing may
// be in several lists: it has links for each.
package linked

// Links are the neighbours of a thing in one list.
type Links[T any] struct{ Prev, Next *T }

// List is a list. The zero value is empty. Its methods take a function that returns a thing's links in this list.
type List[T any] struct{ First, Last *T }

// Add puts x at the end.
func (l *List[T]) Add(x *T, links func(*T) *Links[T]) { l.Insert(x, l.Last, links) }

// Insert puts x behind another thing of the list; behind nil, it is the first.
func (l *List[T]) Insert(x, behind *T, links func(*T) *Links[T]) {
	at := links(x)
	at.Prev = behind
	next := &l.First
	if behind != nil {
		next = &links(behind).Next
	}
	at.Next = *next
	*next = x
	if at.Next == nil {
		l.Last = x
	} else {
		links(at.Next).Prev = x
	}
}

// Remove takes x out.
func (l *List[T]) Remove(x *T, links func(*T) *Links[T]) {
	at := links(x)
	if at.Prev == nil {
		l.First = at.Next
	} else {
		links(at.Prev).Next = at.Next
	}
	if at.Next == nil {
		l.Last = at.Prev
	} else {
		links(at.Next).Prev = at.Prev
	}
	*at = Links[T]{}
}
