package peers

import "math/bits"

// run is a piece of a chain, and grows with the chain: a chat makes one or two runs, however many turns it has. Each
// run of a chain lies elsewhere, in memory that was not read for long.
type run struct {
	before place
	depth  int // blocks before it
	hashes []uint64
	root   uint32 // generation in which the first block of the chain was sent
}

// place is a position in a chain: after the first n blocks of a run, and after all blocks before the run.
type place struct {
	run *run
	n   int
}

// depth returns the number of blocks up to the place.
func (l place) depth() int {
	if l.run == nil {
		return 0
	}
	return l.run.depth + l.n
}

// full writes the chain up to the place into room, which grows as needed.
func (l place) full(room []uint64) []uint64 {
	n := l.depth()
	if cap(room) < n {
		room = make([]uint64, n, n+n/4)
	}
	room = room[:n]
	for l.run != nil {
		copy(room[l.run.depth:], l.run.hashes[:l.n])
		l = l.run.before
	}
	return room
}

// leastPlaces is the number of slots that a table of places begins with: 24 KB.
const leastPlaces = 1 << 10

// places finds a place in a chain by the hash before it. The chains of another router lie in memory that was not read
// for long. A built-in map takes four or five reads there, each of which waits for the one before. This table takes
// one. It never deletes an entry. A hash is made with a secret, so no outsider can choose many hashes for one slot.
type places struct {
	slots []slot // a power of two; a quarter stays free
	shift int    // 64 less the bits of an index
	used  int
}

// slot is an entry of the table. It is free if it has no run.
type slot struct {
	hash uint64
	place
}

// newPlaces makes a table for n entries.
func newPlaces(n int) (p places) {
	p.resize(max(leastPlaces, 1<<bits.Len(uint(n+n/3))))
	return p
}

func (p *places) resize(slots int) {
	p.slots, p.shift = make([]slot, slots), 64-bits.Len(uint(slots-1))
}

// home returns where the search for a hash begins. The hashes of tests count up: the multiplier spreads these too.
func (p *places) home(hash uint64) uint64 { return hash * 0x9e3779b97f4a7c15 >> p.shift }

// slot returns the slot of a hash, or the free slot where it belongs.
func (p *places) slot(hash uint64) *slot {
	for i := p.home(hash); ; i++ {
		s := &p.slots[i&uint64(len(p.slots)-1)]
		if s.hash == hash || s.run == nil {
			return s
		}
	}
}

func (p *places) get(hash uint64) (place, bool) {
	s := p.slot(hash)
	return s.place, s.run != nil
}

func (p *places) put(hash uint64, l place) {
	if p.used >= len(p.slots)*3/4 {
		old := p.slots
		p.resize(2 * len(old))
		for i := range old {
			if s := &old[i]; s.run != nil {
				*p.slot(s.hash) = *s
			}
		}
	}
	s := p.slot(hash)
	if s.run == nil {
		p.used++
	}
	*s = slot{hash, l}
}
