package tier

import "strings"

// maxSpaces bounds the namespaces: one for each kind of session and each strategy; a daemon has a handful.
const maxSpaces = 64

// lru holds the entries of all namespaces, bounded in bytes: what was used least recently goes first. It is not safe
// for concurrent use.
type lru struct {
	max  int // bytes of all
	part int // bytes of one namespace

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
	return lru{max: max, part: max / 2, spaces: map[string]*space{}, owing: map[*entry]struct{}{}}
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
	e := &entry{space: s, key: strings.Clone(k.key), expires: expires, due: expires}
	s.entries[e.key] = e
	l.entries++
	l.charge(e, e.cost())
	e.link()
	l.due.push(e)
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
	s.root.prev = &s.root
	s.root.next = &s.root
	l.spaces[s.name] = s
	return s
}

// setValue gives an entry another value. The caller makes room afterwards.
func (l *lru) setValue(e *entry, value []byte) {
	l.charge(e, len(value)-len(e.value))
	e.value = value
}

func (l *lru) charge(e *entry, n int) {
	l.bytes += n
	e.space.bytes += n
}

// setExpiry gives an entry another end.
func (l *lru) setExpiry(e *entry, expires int64) {
	e.expires = expires
	if expires < e.due {
		l.due.reorder(e, expires)
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
	l.due.remove(e)
	e.unlink()
}

func (l *lru) removeExpired(e *entry) {
	l.expired++
	e.space.expired++
	l.remove(e)
}

// tooLarge reports whether a value may not be held at all.
func (l *lru) tooLarge(key string, value []byte) bool { return len(key)+len(value)+overhead > l.part }

// makeRoom evicts least recently used entries, never e: first of a namespace over its part, then of the largest.
func (l *lru) makeRoom(e *entry) {
	for s := e.space; s.bytes > l.part && s.oldest() != e; {
		l.evict(s.oldest())
	}
	for l.bytes > l.max {
		var largest *space
		for _, s := range l.spaces {
			if s.oldest() != e && len(s.entries) > 0 && (largest == nil || s.bytes > largest.bytes) {
				largest = s
			}
		}
		if largest == nil {
			return
		}
		l.evict(largest.oldest())
	}
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
		e := l.due.first()
		switch {
		case e == nil || e.due > now:
			return false
		case e.expires <= now:
			l.removeExpired(e)
		default:
			l.due.reorder(e, e.expires)
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
