package tier

import "strings"

// maxSpaces bounds the namespaces: one for each kind of session and each strategy; a daemon has a handful.
const maxSpaces = 64

// lru holds the entries of all namespaces, bounded in bytes: what was used least recently goes first. It is not safe
// for concurrent use.
type lru struct {
	max  int // bytes of all
	part int // bytes of one namespace
	shares

	bytes   int
	entries int
	spaces  map[string]*space
	due     expiry
	owing   map[*entry]struct{} // those whose debt is not paid
	evicted uint64
	expired uint64
	refused uint64 // values too large, namespaces too many
	lost    uint64 // evicted before Redis was given them
}

func newLRU(max int) lru {
	return lru{max: max, part: max / 2, shares: shares{most: max / 2, expect: 1, owners: map[string]*owner{}},
		spaces: map[string]*space{}, owing: map[*entry]struct{}{}}
}

// find returns the entry of a value, and removes it if it is expired.
func (l *lru) find(k id, now int64) *entry {
	s := l.spaces[k.ns]
	if s == nil {
		return nil
	}
	e := s.entries[k.key]
	if e != nil && e.expires <= now {
		l.removeExpired(e)
		return nil
	}
	return e
}

// add makes an entry without a value; nil if there are too many namespaces.
func (l *lru) add(k id, expires int64) *entry {
	s := l.space(k.ns)
	if s == nil {
		l.refused++
		return nil
	}
	e := &entry{space: s, shelf: &s.shelf, key: strings.Clone(k.key), expires: expires, due: expires}
	s.entries[e.key] = e
	l.entries++
	l.charge(e, e.cost())
	e.link()
	l.due.Put(e)
	return e
}

// space returns the namespace of that name, in place of an empty one if there are too many; nil if none is empty.
func (l *lru) space(ns string) *space {
	if s := l.spaces[ns]; s != nil {
		return s
	}
	if len(l.spaces) >= maxSpaces {
		for name, s := range l.spaces {
			if len(s.entries) == 0 {
				delete(l.spaces, name)
				break
			}
		}
		if len(l.spaces) >= maxSpaces {
			return nil
		}
	}
	s := &space{name: strings.Clone(ns), entries: map[string]*entry{}}
	s.shelf.clear(nil)
	l.spaces[s.name] = s
	return s
}

// setValue gives an entry another value. A tombstone has none, and stays where the value was. The caller makes room
// afterwards.
func (l *lru) setValue(e *entry, value []byte) {
	l.charge(e, len(value)-len(e.value))
	e.value = value
	if value != nil {
		l.shelve(e, l.shelfOf(e.space, value))
	}
}

// shelve puts an entry into another shelf.
func (l *lru) shelve(e *entry, to *shelf) {
	from := e.shelf
	if from == to {
		return
	}
	e.unlink()
	l.shares.charge(from, -e.cost())
	e.shelf = to
	l.shares.charge(to, e.cost())
	e.link()
	l.forget(from)
}

func (l *lru) charge(e *entry, n int) {
	l.bytes += n
	e.space.bytes += n
	l.shares.charge(e.shelf, n)
}

// setExpiry gives an entry another end.
func (l *lru) setExpiry(e *entry, expires int64) {
	e.expires = expires
	if expires < e.due {
		l.reorder(e, expires)
	}
}

func (l *lru) setDebt(e *entry, d debt) {
	if e.owes == d {
		return
	}
	e.owes = d
	if d == paid {
		delete(l.owing, e)
	} else {
		l.owing[e] = struct{}{}
	}
}

func (l *lru) remove(e *entry) {
	delete(e.space.entries, e.key)
	delete(l.owing, e)
	l.charge(e, -e.cost())
	l.entries--
	l.due.Drop(e)
	e.unlink()
	l.forget(e.shelf)
}

func (l *lru) removeExpired(e *entry) {
	l.expired++
	e.space.expired++
	l.remove(e)
}

// tooLarge reports whether a value may not be held at all.
func (l *lru) tooLarge(key string, value []byte) bool { return len(key)+len(value)+overhead > l.part }

// makeRoom evicts least recently used entries, never e: first of the owner of e, or of a namespace over its part, then
// of the largest. It reports whether e has room now.
func (l *lru) makeRoom(e *entry) bool {
	if e.shelf.owner != nil {
		for victim, over := l.excess(e); over; victim, over = l.excess(e) {
			if victim == nil {
				return false
			}
			l.evict(victim)
		}
	} else {
		for s := e.shelf; s.bytes > l.part && s.oldest() != e; {
			l.evict(s.oldest())
		}
	}
	for l.bytes > l.max {
		largest := l.largest(e)
		if largest == nil {
			break
		}
		l.evict(largest.oldest())
	}
	return true
}

// largest returns the largest shelf that has another entry than e: of a namespace, and of an owner only if all others
// are empty. That can be only for a moment, when the number of owners has changed.
func (l *lru) largest(e *entry) *shelf {
	var largest *shelf
	consider := func(s *shelf) {
		if s.oldest() != e && s.bytes > 0 && (largest == nil || s.bytes > largest.bytes) {
			largest = s
		}
	}
	for _, s := range l.spaces {
		consider(&s.shelf)
	}
	if largest != nil {
		return largest
	}
	for _, o := range l.owners {
		consider(&o.loose)
	}
	for _, o := range l.owners {
		if largest == nil || largest.owner != o {
			consider(&o.promised)
		}
	}
	return largest
}

func (l *lru) evict(e *entry) {
	if e.owes != paid {
		l.lost++
	}
	l.evicted++
	e.space.evicted++
	l.remove(e)
}

// sweep removes what is expired, of most entries at most. It reports whether there may be more.
func (l *lru) sweep(now int64, most int) (more bool) {
	for range most {
		if len(l.due) == 0 || l.due[0].due > now {
			return false
		}
		switch e := l.due[0]; {
		case e.expires <= now:
			l.removeExpired(e)
		default:
			l.reorder(e, e.expires)
		}
	}
	return true
}

func (l *lru) stats(st *Stats) {
	st.Entries = l.entries
	st.Bytes = l.bytes
	st.Refused = l.refused
	st.L2.Owing = len(l.owing)
	st.L2.Lost = l.lost
	st.Evictions = l.evicted
	st.Expirations = l.expired
	st.Namespaces = make(map[string]NamespaceStats, len(l.spaces))
	for name, s := range l.spaces {
		st.Namespaces[name] = NamespaceStats{
			Entries: len(s.entries), Bytes: s.bytes, Evictions: s.evicted, Expirations: s.expired,
		}
	}
}
