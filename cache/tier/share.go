package tier

// Half of memory is for values that have an owner, such as the sessions of an API key. Each owner has a reserved part
// of it: with n owners half of it divided by n. The rest is for whoever comes first. So one owner that floods the store
// never evicts what another holds. A single owner may use all of it.

// Owners returns the owner whose share of memory a value takes.
type Owners interface {
	// Owner returns the owner of a value in a namespace. ok is false for a value that has none. A promised value is not
	// evicted while it lives, unless Redis has it: where there is no room for one, it is refused.
	Owner(ns string, value []byte) (name string, promised, ok bool)
}

// owner is what one owner holds.
type owner struct {
	name     string
	promised shelf
	loose    shelf
}

func (o *owner) bytes() int { return o.promised.bytes + o.loose.bytes }

// shelf is a ring of entries that give way to one another, the most recently used one first.
type shelf struct {
	root  entry
	bytes int
	owner *owner // nil: the entries of a namespace whose values have none
}

func (s *shelf) clear(o *owner) {
	s.root.prev, s.root.next, s.owner = &s.root, &s.root, o
}

// oldest returns the least recently used entry; root if there is none.
func (s *shelf) oldest() *entry { return s.root.prev }

// settled returns the least recently used entry but e that Redis has as it is; nil if there is none among the oldest.
func (s *shelf) settled(e *entry) *entry {
	at := s.oldest()
	for range settledLook {
		switch {
		case at == &s.root:
			return nil
		case at != e && at.owes == paid:
			return at
		}
		at = at.prev
	}
	return nil
}

// settledLook bounds how many entries one eviction looks at.
const settledLook = 64

// shares divides the memory for values that have an owner.
type shares struct {
	of     Owners // nil: no value has one
	backed bool   // Redis keeps the values too
	most   int    // bytes of all owners
	expect int    // owners that are expected, at least 1
	owners map[string]*owner
	common int // bytes that owners hold beyond their own parts
}

// part is what an owner holds whatever the others do, in bytes.
func (s *shares) part() int {
	if s.expect == 1 {
		return s.most
	}
	return s.most / 2 / s.expect
}

func (s *shares) beyond(o *owner) int { return max(0, o.bytes()-s.part()) }

// limit is what an owner may hold now, in bytes.
func (s *shares) limit(o *owner) int {
	others := s.common - s.beyond(o)
	return s.part() + max(0, s.most-s.expect*s.part()-others)
}

// promisedLimit is what of it may be promised: the rest is for the owner's values that give way.
func (s *shares) promisedLimit(o *owner) int { return s.limit(o) / 4 * 3 }

// setExpect sets how many owners are expected.
func (s *shares) setExpect(n int) {
	s.expect = max(1, n)
	s.common = 0
	for _, o := range s.owners {
		s.common += s.beyond(o)
	}
}

// charge enters bytes of a shelf.
func (s *shares) charge(at *shelf, n int) {
	if o := at.owner; o != nil {
		s.common -= s.beyond(o)
		at.bytes += n
		s.common += s.beyond(o)
		return
	}
	at.bytes += n
}

// shelfOf returns where a value of a namespace belongs.
func (s *shares) shelfOf(in *space, value []byte) *shelf {
	if s.of == nil {
		return &in.shelf
	}
	name, promised, ok := s.of.Owner(in.name, value)
	if !ok {
		return &in.shelf
	}
	o := s.owners[name]
	if o == nil {
		o = &owner{name: name}
		o.promised.clear(o)
		o.loose.clear(o)
		s.owners[name] = o
	}
	if promised {
		return &o.promised
	}
	return &o.loose
}

// forget drops an owner that holds nothing.
func (s *shares) forget(at *shelf) {
	if o := at.owner; o != nil && o.bytes() == 0 {
		delete(s.owners, o.name)
	}
}

// admits reports whether an owner has room for a value more, of so many bytes, if it is promised. Where Redis keeps
// the values of a single owner, older ones give way in memory.
func (s *shares) admits(ns string, value []byte, bytes int) bool {
	if s.of == nil || s.backed && s.expect == 1 {
		return true
	}
	name, promised, ok := s.of.Owner(ns, value)
	if !ok || !promised {
		return true
	}
	o := s.owners[name]
	if o == nil {
		o = &owner{}
	}
	return o.promised.bytes+bytes <= s.promisedLimit(o)
}

// excess returns an entry of the owner of e that has to give way to it; nil if none can. over is false if the owner is
// within its limits.
func (s *shares) excess(e *entry) (victim *entry, over bool) {
	o := e.shelf.owner
	promised := o.promised.bytes > s.promisedLimit(o)
	switch {
	case !promised && o.bytes() <= s.limit(o):
		return nil, false
	case !promised && o.loose.oldest() != e && o.loose.bytes > 0:
		return o.loose.oldest(), true
	case s.backed:
		return o.promised.settled(e), true
	}
	return nil, true
}
