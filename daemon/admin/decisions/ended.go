package decisions

// ended is the requests that have ended: records in a circle of bytes, the oldest first. The oldest make room.
//
// The last records stand in fresh first, which is small enough to stay in the processor's cache. They go to their
// places in the circle together: a record written there by itself waits for each of its lines to come from memory.
type ended struct {
	bytes []byte // nil until the first record
	fresh []byte // the records from place on that are not in bytes yet
	place int    // of the first byte of fresh
	marks []mark // a queue in a circle: count of them from first on; a power of two
	first int
	count int
	next  int    // where the next record goes, if it fits there
	used  int    // bytes of the records
	gone  uint64 // records that made room, ever
}

// mark is the place of a record: its end, then the decision.
type mark struct {
	start     int
	size, end int32
	number    uint64 // of the request
	change    uint64 // counted over the ring
}

// markSize is the memory of a mark.
const markSize = 32

// record is a request that has ended.
type record struct {
	number, change uint64
	end, decided   []byte
}

// freshSize is the bytes of records that go to the circle together: a part of what a core's own cache holds.
const freshSize = 32 << 10

// cost is the memory of the records.
func (l *ended) cost() int { return l.used + l.count*markSize }

// at returns the i-th oldest.
func (l *ended) at(i int) *mark { return &l.marks[(l.first+i)&(len(l.marks)-1)] }

// text returns the bytes of a record, which are others once it is gone.
func (l *ended) text(m *mark) (decided, end []byte) {
	from := l.bytes[m.start:]
	if after := m.start - l.place; after >= 0 && after < len(l.fresh) {
		from = l.fresh[after:]
	}
	all := from[:m.size]
	return all[m.end:], all[:m.end]
}

// entry reads a record.
func (l *ended) entry(m *mark) *entry {
	decided, end := l.text(m)
	return whole(m.number, decided, end)
}

// settle brings the fresh records to their places. The next one stands at next.
func (l *ended) settle() {
	copy(l.bytes[l.place:], l.fresh)
	l.fresh, l.place = l.fresh[:0], l.next
}

// add makes a record the last, in a circle of most bytes.
func (l *ended) add(r record, most int) {
	size := len(r.end) + len(r.decided)
	if size > most {
		return
	}
	if len(l.bytes) != most {
		l.resize(most)
	}
	if l.next+size > most { // it stands in one piece
		for l.count > 0 && l.at(0).start >= l.next {
			l.pop()
		}
		l.next = 0
		l.settle()
	}
	for l.count > 0 && l.at(0).start < l.next+size && l.at(0).start >= l.next {
		l.pop()
	}
	if len(l.fresh)+size > freshSize {
		l.settle()
	}
	l.fresh = append(append(l.fresh, r.end...), r.decided...)
	if l.count == len(l.marks) {
		l.grow()
	}
	l.count++
	*l.at(l.count - 1) = mark{start: l.next, size: int32(size), end: int32(len(r.end)), number: r.number, change: r.change}
	l.used += size
	l.next += size
}

// pop takes the oldest out. There is one.
func (l *ended) pop() {
	l.used -= int(l.at(0).size)
	l.first = (l.first + 1) & (len(l.marks) - 1)
	l.count--
	l.gone++
}

// grow makes room for twice as many marks.
func (l *ended) grow() {
	wider := make([]mark, max(64, 2*len(l.marks)))
	for i := range l.count {
		wider[i] = *l.at(i)
	}
	l.marks, l.first = wider, 0
}

// shrink removes the oldest until those that are left take at most so many bytes.
func (l *ended) shrink(most int) {
	for l.count > 0 && l.cost() > most {
		l.pop()
	}
}

// resize takes a circle of so many bytes, and the last records along.
func (l *ended) resize(most int) {
	l.shrink(most)
	l.settle()
	before, kept := *l, 0
	bytes := make([]byte, most)
	for i := range l.count {
		m := l.at(i)
		start := kept
		kept += copy(bytes[kept:], before.bytes[m.start:m.start+int(m.size)])
		m.start = start
	}
	l.bytes, l.next, l.place = bytes, kept, kept
}
