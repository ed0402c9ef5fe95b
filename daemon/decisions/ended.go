package decisions

// ended is the requests that have ended: records in a circle of bytes, the oldest first. The oldest make room.
type ended struct {
	bytes []byte // nil until the first record
	marks []mark // a queue in a circle: count of them from first on
	first int
	count int
	next  int    // where the next record goes, if it fits there
	used  int    // bytes of the records
	gone  uint64 // records that made room, ever
}

// mark is where a record stands: its end, then what was decided.
type mark struct {
	start     int
	size, end int32
	change    uint64 // counted over the ring
}

// markSize is the memory of a mark.
const markSize = 24

// cost is the memory of the records.
func (l *ended) cost() int { return l.used + l.count*markSize }

// at returns the i-th oldest.
func (l *ended) at(i int) *mark { return &l.marks[(l.first+i)%len(l.marks)] }

// text returns the bytes of a record, which are others once it is gone.
func (l *ended) text(m *mark) (decided, end []byte) {
	all := l.bytes[m.start : m.start+int(m.size)]
	return all[m.end:], all[:m.end]
}

// add makes a record the last, in a circle of most bytes.
func (l *ended) add(end, decided []byte, change uint64, most int) {
	size := len(end) + len(decided)
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
	}
	for l.count > 0 && l.at(0).start < l.next+size && l.at(0).start >= l.next {
		l.pop()
	}
	n := copy(l.bytes[l.next:], end)
	copy(l.bytes[l.next+n:], decided)
	if l.count == len(l.marks) {
		l.grow()
	}
	l.count++
	*l.at(l.count - 1) = mark{start: l.next, size: int32(size), end: int32(n), change: change}
	l.used += size
	l.next += size
}

// pop takes the oldest out. There is one.
func (l *ended) pop() {
	l.used -= int(l.at(0).size)
	l.first = (l.first + 1) % len(l.marks)
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
	before, kept := *l, 0
	bytes := make([]byte, most)
	for i := range l.count {
		m := l.at(i)
		start := kept
		kept += copy(bytes[kept:], before.bytes[m.start:m.start+int(m.size)])
		m.start = start
	}
	l.bytes, l.next = bytes, kept
}
