package arena

import "math/bits"

// Extent is a piece of the arena.
type Extent struct{ Offset, Len int64 }

const (
	// PageSize is the unit of the arena. 64 KiB: a value of 1 MiB is 16 pages, 128 GiB are two million bits.
	PageSize = 64 << 10

	maxSlot = PageSize / 2 // a longer rest takes a page of its own
	nearby  = 256          // words of the bitmap searched for one run: 16,384 pages, 1 GiB
)

// slotSizes are those of slots, two to a doubling: a value wastes a third of its slot at most, a seventh as a rule.
var slotSizes = []int64{64, 96, 128, 192, 256, 384, 512, 768, 1 << 10, 1536, 2 << 10, 3 << 10, 4 << 10, 6 << 10,
	8 << 10, 12 << 10, 16 << 10, 21824, 32 << 10} // 21824: three slots of a page

// Space records which pages and slots of an arena are free. Not safe for concurrent use.
type Space struct {
	free  []uint64 // a bit for each page
	pages int64
	left  int64 // free pages
	hint  int   // no word before it has a free page: low pages are used first, as they are warm

	slabs map[int64]*slab // by page
	open  [][]*slab       // for each slot size: slabs that have a free slot
}

// slab is a page cut into slots.
type slab struct {
	page, size int64
	class      int
	slots      int
	taken      int
	place      int // in Space.open; -1 = full
	free       [PageSize / 64 / 64]uint64
}

// NewSpace returns a space of size bytes, rounded down to pages, all free.
func NewSpace(size int64) *Space {
	s := &Space{pages: size / PageSize, slabs: map[int64]*slab{}, open: make([][]*slab, len(slotSizes))}
	s.left = s.pages
	s.free = make([]uint64, (s.pages+63)/64)
	for w := range s.free {
		s.free[w] = ^uint64(0) >> (64 - min(64, s.pages-int64(w)*64))
	}
	return s
}

// Size returns the bytes of the space.
func (s *Space) Size() int64 { return s.pages * PageSize }

// Free returns the bytes of free pages. Free slots of other pages are not among them.
func (s *Space) Free() int64 { return s.left * PageSize }

// split returns how many pages a value takes, and how many bytes of it take a slot.
func split(size int64) (pages, rest int64) {
	pages, rest = size/PageSize, size%PageSize
	if rest > maxSlot {
		return pages + 1, 0
	}
	return pages, rest
}

// Cost returns the bytes that a value of that size takes of the arena.
func Cost(size int64) int64 {
	pages, rest := split(size)
	if rest > 0 {
		return pages*PageSize + slotSizes[classOf(rest)]
	}
	return pages * PageSize
}

// classOf returns the smallest slot that holds size bytes.
func classOf(size int64) int {
	for i, slot := range slotSizes {
		if size <= slot {
			return i
		}
	}
	panic("BUG: arena: no slot is so long")
}

// Alloc takes room for a value. Its extents are in the value's order and have its length together. false = there is not
// enough room, and nothing was taken.
func (s *Space) Alloc(size int64) ([]Extent, bool) {
	pages, rest := split(size)
	if pages > s.left {
		return nil, false
	}
	var tail Extent
	if rest > 0 {
		var ok bool
		tail, ok = s.takeSlot(rest, s.left-pages)
		if !ok {
			return nil, false
		}
	}
	var list []Extent
	if pages > 0 {
		list = s.takePages(pages)
		last := &list[len(list)-1]
		if rest == 0 {
			last.Len -= pages*PageSize - size
		}
	}
	if rest > 0 {
		list = append(list, tail)
	}
	return list, true
}

// Release frees the extents of one Alloc.
func (s *Space) Release(list []Extent) {
	for _, e := range list {
		if b := s.slabs[e.Offset/PageSize]; b != nil {
			s.giveSlot(b, e.Offset)
			continue
		}
		for p := e.Offset / PageSize; p*PageSize < e.Offset+e.Len; p++ {
			s.givePage(p)
		}
	}
}

func (s *Space) givePage(p int64) {
	bit := uint64(1) << (p % 64)
	if s.free[p/64]&bit != 0 {
		panic("BUG: arena: a page is given back twice")
	}
	s.free[p/64] |= bit
	s.left++
	s.hint = min(s.hint, int(p/64))
}

// takePages takes n pages; the caller has checked that there are as many.
func (s *Space) takePages(n int64) []Extent {
	if p, ok := s.findRun(n); ok {
		return []Extent{s.takeRun(p, n)}
	}
	var list []Extent
	for n > 0 {
		p := s.firstFree()
		run := s.takeRun(p, min(n, s.runAt(p, n)))
		n -= run.Len / PageSize
		if k := len(list) - 1; k >= 0 && list[k].Offset+list[k].Len == run.Offset {
			list[k].Len += run.Len
			continue
		}
		list = append(list, run)
	}
	return list
}

func (s *Space) takeRun(p, n int64) Extent {
	for q := p; q < p+n; q++ {
		s.free[q/64] &^= 1 << (q % 64)
	}
	s.left -= n
	return Extent{Offset: p * PageSize, Len: n * PageSize}
}

// firstFree returns the lowest free page.
func (s *Space) firstFree() int64 {
	for w := s.hint; w < len(s.free); w++ {
		if s.free[w] != 0 {
			s.hint = w
			return int64(w*64 + bits.TrailingZeros64(s.free[w]))
		}
	}
	panic("BUG: arena: free pages are counted that are not there")
}

// runAt returns how many pages from p on are free, up to n.
func (s *Space) runAt(p, n int64) (length int64) {
	for length < n && p+length < s.pages {
		q := p + length
		rest := ^s.free[q/64] >> (q % 64) // taken pages from q on
		step := min(int64(bits.TrailingZeros64(rest)), 64-q%64)
		length += step
		if q%64+step < 64 {
			break
		}
	}
	return min(length, n)
}

// findRun searches n free pages in a row, from the lowest free one on.
func (s *Space) findRun(n int64) (int64, bool) {
	first := int(s.firstFree() / 64)
	for i := 0; i < nearby && first+i < len(s.free); i++ {
		w := first + i
		for word := s.free[w]; word != 0; {
			at := bits.TrailingZeros64(word)
			p := int64(w*64 + at)
			run := s.runAt(p, n)
			if run >= n {
				return p, true
			}
			if int64(at)+run >= 64 {
				i += int(run / 64) // the words that runAt has read
				break
			}
			word = word >> (int64(at) + run) << (int64(at) + run)
		}
	}
	return 0, false
}

// takeSlot takes a slot for size bytes. A new slab may take one of the spare pages.
func (s *Space) takeSlot(size, spare int64) (Extent, bool) {
	class := classOf(size)
	if len(s.open[class]) == 0 {
		if spare == 0 {
			return Extent{}, false
		}
		s.addSlab(class)
	}
	b := s.open[class][len(s.open[class])-1]
	for w := range b.free {
		if b.free[w] == 0 {
			continue
		}
		slot := w*64 + bits.TrailingZeros64(b.free[w])
		b.free[w] &= b.free[w] - 1
		b.taken++
		if b.taken == b.slots {
			s.shut(b)
		}
		return Extent{Offset: b.page*PageSize + int64(slot)*b.size, Len: size}, true
	}
	panic("BUG: arena: an open slab has no free slot")
}

func (s *Space) addSlab(class int) {
	page := s.firstFree()
	s.takeRun(page, 1)
	b := &slab{page: page, size: slotSizes[class], class: class, slots: int(PageSize / slotSizes[class])}
	for slot := range b.slots {
		b.free[slot/64] |= 1 << (slot % 64)
	}
	s.slabs[page] = b
	s.unshut(b)
}

func (s *Space) giveSlot(b *slab, offset int64) {
	slot := (offset - b.page*PageSize) / b.size
	bit := uint64(1) << (slot % 64)
	if b.free[slot/64]&bit != 0 {
		panic("BUG: arena: a slot is given back twice")
	}
	b.free[slot/64] |= bit
	b.taken--
	switch {
	case b.taken == 0:
		if b.place >= 0 {
			s.shut(b)
		}
		delete(s.slabs, b.page)
		s.givePage(b.page)
	case b.place < 0:
		s.unshut(b)
	}
}

// shut removes the slab from those with a free slot.
func (s *Space) shut(b *slab) {
	list := s.open[b.class]
	last := list[len(list)-1]
	list[b.place] = last
	last.place = b.place
	s.open[b.class] = list[:len(list)-1]
	b.place = -1
}

func (s *Space) unshut(b *slab) {
	b.place = len(s.open[b.class])
	s.open[b.class] = append(s.open[b.class], b)
}
