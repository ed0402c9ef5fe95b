package tier

// id names a value.
type id struct{ ns, key string }

// entry is a value, or a tombstone that keeps Redis's old value from coming back. Times are of the store's clock.
type entry struct {
	space      *space
	shelf      *shelf // whose ring it is in
	key        string
	value      []byte // never changed in place: readers hold it outside the lock
	expires    int64
	checked    int64 // when Redis last confirmed it, or this router wrote it
	owes       debt
	base       []byte // while owes gives way: what Redis had when it last answered; nil = nothing
	version    uint32 // moves with every change of value
	due        int64  // its place in the expiry heap was taken for this time, never later than expires
	at         int    // place in the expiry heap; 0 = it was removed
	prev, next *entry // of the LRU ring
}

// overhead is the memory of an entry without its key and value: the entry itself (192 bytes), two map slots' worth of a
// half-full table (2 x 24), one place in the expiry heap (8), rounding of two allocations (2 x 16). TestMemoryIsBounded
// weighs it against the heap.
const overhead = 288

func (e *entry) cost() int { return len(e.key) + len(e.value) + overhead }

func (e *entry) id() id { return id{e.space.name, e.key} }

// live reports whether the entry is a value.
func (e *entry) live() bool { return !e.owes.tombstone() }

// debtAfter returns what the entry owes after a further change that owes d by itself. At the first of several changes
// that give way it records in base what Redis had. Once a change is owed that Redis gets whatever it has, so are all
// later ones.
func (e *entry) debtAfter(d debt) debt {
	if !d.givesWay() {
		e.base = nil
		return d
	}
	switch e.owes {
	case oweReplace, oweDrop: // base stays
	case oweSet, oweDelete:
		e.base = nil
		if d == oweDrop {
			return oweDelete
		}
		return oweSet
	default: // nil if the entry is new
		e.base = e.value
	}
	return d
}

// space is a namespace: its entries.
type space struct {
	name    string
	entries map[string]*entry
	bytes   int
	shelf   shelf // of its values that have no owner
	evicted uint64
	expired uint64
}

// moveToFront makes the entry the most recently used of its shelf.
func (e *entry) moveToFront() {
	if e.shelf.root.next != e {
		e.unlink()
		e.link()
	}
}

func (e *entry) link() {
	r := &e.shelf.root
	e.prev = r
	e.next = r.next
	e.prev.next = e
	e.next.prev = e
}

func (e *entry) unlink() {
	e.prev.next = e.next
	e.next.prev = e.prev
}
