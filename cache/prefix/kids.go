package prefix

// kids holds a node's children by the first hash of their run. Most nodes have at most one, and need no table.
type kids struct {
	first uint64 // of the only child's run: a search for another child need not read that node
	one   *node
	many  *family // two or more
}

// family is a table of children. An entry lies at its hash, or after other entries behind that place. The table lies in
// memory that was not read for long. A built-in map takes four or five reads there, each of which waits for the one
// before. This table takes two. When it is full at mostSlots, further children go into such a map, which grows in
// parts: a table of a million would make a pick wait for milliseconds.
type family struct {
	n     int   // in slots
	slots []kid // a power of two; a quarter stays free
	more  map[uint64]*node
}

// mostSlots makes a table of 1 MB, which takes half a millisecond to refill. Tests change it.
var mostSlots = 1 << 16

// kid is an entry of the table. It is free if it has no node.
type kid struct {
	first uint64
	node  *node
}

func (k *kids) none() bool { return k.one == nil && k.many == nil }

func (k *kids) get(first uint64) *node {
	if k.many != nil {
		return k.many.get(first)
	}
	if k.first == first {
		return k.one
	}
	return nil
}

// put adds n, or replaces the child with the same first hash.
func (k *kids) put(n *node) {
	first := n.run[0]
	switch {
	case k.many != nil:
		k.many.put(first, n)
	case k.one == nil || k.first == first:
		k.first, k.one = first, n
	default:
		k.many = &family{slots: make([]kid, 4)}
		k.many.put(k.first, k.one)
		k.many.put(first, n)
		k.one = nil
	}
}

// remove deletes the child whose run starts with first.
func (k *kids) remove(first uint64) {
	if k.many == nil {
		k.one = nil
		return
	}
	k.many.remove(first)
	if k.many.size() == 1 {
		for n := range k.all {
			k.first, k.one = n.run[0], n
		}
		k.many = nil
	}
}

// all yields the children.
func (k *kids) all(yield func(n *node) bool) {
	if k.one != nil && !yield(k.one) || k.many == nil {
		return
	}
	for _, s := range k.many.slots {
		if s.node != nil && !yield(s.node) {
			return
		}
	}
	for _, n := range k.many.more {
		if !yield(n) {
			return
		}
	}
}

func (f *family) size() int { return f.n + len(f.more) }

func (f *family) get(first uint64) *node {
	if n := f.slots[f.find(first)].node; n != nil || f.more == nil {
		return n
	}
	return f.more[first]
}

// find returns the index of the entry, or of the free slot where it belongs. Clients cannot choose hashes, as these are
// made with a secret. The hashes of tests count up: the multiplier spreads these too.
func (f *family) find(first uint64) int {
	i := f.home(first)
	for f.slots[i].first != first && f.slots[i].node != nil {
		i = f.after(i)
	}
	return i
}

func (f *family) home(first uint64) int {
	return int(first*0x9e3779b97f4a7c15>>32) & (len(f.slots) - 1)
}

func (f *family) after(i int) int { return (i + 1) & (len(f.slots) - 1) }

func (f *family) put(first uint64, n *node) {
	i := f.find(first)
	if f.slots[i].node == nil {
		full := f.n >= len(f.slots)/4*3
		if f.more[first] != nil || full && len(f.slots) >= mostSlots {
			if f.more == nil {
				f.more = map[uint64]*node{}
			}
			f.more[first] = n
			return
		}
		if full {
			f.resize(2 * len(f.slots))
			i = f.find(first)
		}
		f.n++
	}
	f.slots[i] = kid{first, n}
}

func (f *family) resize(slots int) {
	old := f.slots
	f.slots = make([]kid, slots)
	for _, s := range old {
		if s.node != nil {
			f.slots[f.find(s.first)] = s
		}
	}
}

// remove deletes an entry, and moves the entries after it that a search would miss otherwise.
func (f *family) remove(first uint64) {
	free := f.find(first)
	if f.slots[free].node == nil {
		delete(f.more, first)
		return
	}
	f.n--
	for i := f.after(free); f.slots[i].node != nil; i = f.after(i) {
		home := f.home(f.slots[i].first)
		if far, gap := (i-home)&(len(f.slots)-1), (i-free)&(len(f.slots)-1); far >= gap {
			f.slots[free] = f.slots[i]
			free = i
		}
	}
	f.slots[free] = kid{}
	if len(f.slots) > 16 && f.n < len(f.slots)/8 {
		f.resize(len(f.slots) / 4)
	}
}
