package evict

// Item is one value in a policy's order. Its owner sets Value, Size and Hash before Add, and leaves it alone until the
// policy has returned it.
type Item[T any] struct {
	Value T
	Size  int64  // bytes that its eviction frees
	Hash  uint64 // of its key, by which s3fifo recognises a value that it evicted a short while ago

	prev, next *Item[T]
	in         *list[T]
	uses       uint8
}

// list is a queue with new items at the front. It counts their bytes.
type list[T any] struct {
	root  Item[T] // the ring's start: root.next is the front, root.prev the back
	n     int
	bytes int64
}

func (l *list[T]) init() {
	l.root.next = &l.root
	l.root.prev = &l.root
}

func (l *list[T]) back() *Item[T] {
	if l.n == 0 {
		return nil
	}
	return l.root.prev
}

func (l *list[T]) pushFront(i *Item[T]) {
	i.in = l
	i.prev = &l.root
	i.next = l.root.next
	i.prev.next = i
	i.next.prev = i
	l.n++
	l.bytes += i.Size
}

func (l *list[T]) remove(i *Item[T]) {
	i.prev.next = i.next
	i.next.prev = i.prev
	i.prev, i.next, i.in = nil, nil, nil
	l.n--
	l.bytes -= i.Size
}

func (l *list[T]) toFront(i *Item[T]) {
	l.remove(i)
	l.pushFront(i)
}

// takeBack removes the oldest item for which free is true. It moves the items that come before it, which are in use, to
// the front.
func (l *list[T]) takeBack(free func(*Item[T]) bool) *Item[T] {
	for range l.n {
		i := l.back()
		if free(i) {
			l.remove(i)
			return i
		}
		l.toFront(i)
	}
	return nil
}
