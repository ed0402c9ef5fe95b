package tier

import "strings"

// makeRoom evicts least recently used entries, never e: first of a namespace over its part, then of the largest.
func (m *memory) makeRoom(e *entry) {
	for s := e.space; s.bytes > m.part && s.root.prev != e; {
		m.evict(s.root.prev)
	}
	for m.bytes > m.max {
		var largest *space
		for _, s := range m.spaces {
			if s.root.prev != e && len(s.entries) > 0 && (largest == nil || s.bytes > largest.bytes) {
				largest = s
			}
		}
		if largest == nil {
			return
		}
		m.evict(largest.root.prev)
	}
}

func (m *memory) evict(e *entry) {
	if e.owes != paid {
		m.lost++
	}
	m.evicted++
	e.space.evicted++
	m.drop(e)
}

// space returns the namespace of that name, in place of an empty one if there are too many; nil if none is empty.
func (m *memory) space(ns string) *space {
	if s := m.spaces[ns]; s != nil {
		return s
	}
	if len(m.spaces) >= maxSpaces {
		for name, s := range m.spaces {
			if len(s.entries) == 0 {
				delete(m.spaces, name)
				break
			}
		}
		if len(m.spaces) >= maxSpaces {
			return nil
		}
	}
	s := &space{name: strings.Clone(ns), entries: map[string]*entry{}}
	s.root.prev, s.root.next = &s.root, &s.root
	m.spaces[s.name] = s
	return s
}

func (m *memory) drop(e *entry) {
	delete(e.space.entries, e.key)
	delete(m.owing, e)
	m.charge(e, -e.cost())
	m.entries--
	m.due.remove(e)
	e.unlink()
}

func (m *memory) charge(e *entry, n int) {
	m.bytes += n
	e.space.bytes += n
}

func (m *memory) owe(e *entry, d debt) {
	e.owes = d
	if d == paid {
		delete(m.owing, e)
	} else {
		m.owing[e] = struct{}{}
	}
}

func (m *memory) expire(e *entry, expires int64) {
	e.expires = expires
	if expires < e.due {
		e.due = expires
		m.due.fix(e)
	}
}

// touched makes the entry the most recently used of its namespace.
func (e *entry) touched() {
	if e.space.root.next != e {
		e.unlink()
		e.link()
	}
}

func (e *entry) link() {
	r := &e.space.root
	e.prev, e.next = r, r.next
	e.prev.next, e.next.prev = e, e
}

func (e *entry) unlink() { e.prev.next, e.next.prev = e.next, e.prev }
