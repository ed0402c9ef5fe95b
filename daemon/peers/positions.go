package peers

import "math/bits"

// run is a piece of a chain, and grows with the chain: a chat makes one or two runs, however many turns it has. Each
// run of a chain lies elsewhere, in memory that was not read for long.
type run struct {
	before position
	depth  int // blocks before it
	hashes []uint64
	root   uint32 // generation in which the first block of the chain was sent
}

// position is where in a chain something stands: after the first n blocks of a run, and all blocks before the run.
type position struct {
	run *run
	n   int
}

// depth returns the number of blocks up to the position.
func (l position) depth() int {
	if l.run == nil {
		return 0
	}
	return l.run.depth + l.n
}

// full writes the chain up to the position into room, which grows as needed.
func (l position) full(room []uint64) []uint64 {
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

// leastPositions is the number of buckets that a table of positions begins with: 24 KB.
const leastPositions = 1 << 10

// positions finds a position in a chain by the hash before it. The chains of another router lie in memory that was not
// read for long. A built-in map takes four or five reads there, each of which waits for the one before. This table
// takes one. It never deletes an entry. A hash is made with a secret, so no outsider can choose many hashes for one
// bucket.
type positions struct {
	buckets []bucket // a power of two; a quarter stays free
	shift   int      // 64 less the bits of an index
	used    int
}

// bucket is a place in the table. It is free if it has no run.
type bucket struct {
	hash uint64
	position
}

// newPositions makes a table for n entries.
func newPositions(n int) (p positions) {
	p.resize(max(leastPositions, 1<<bits.Len(uint(n+n/3))))
	return p
}

func (p *positions) resize(size int) {
	p.buckets, p.shift = make([]bucket, size), 64-bits.Len(uint(size-1))
}

// home returns where the search for a hash begins. The hashes of tests count up: the multiplier spreads these too.
func (p *positions) home(hash uint64) uint64 { return hash * 0x9e3779b97f4a7c15 >> p.shift }

// bucket returns the bucket of a hash, or the free one where it belongs.
func (p *positions) bucket(hash uint64) *bucket {
	for i := p.home(hash); ; i++ {
		s := &p.buckets[i&uint64(len(p.buckets)-1)]
		if s.hash == hash || s.run == nil {
			return s
		}
	}
}

func (p *positions) get(hash uint64) (position, bool) {
	s := p.bucket(hash)
	return s.position, s.run != nil
}

func (p *positions) put(hash uint64, l position) {
	if p.used >= len(p.buckets)*3/4 {
		old := p.buckets
		p.resize(2 * len(old))
		for i := range old {
			if s := &old[i]; s.run != nil {
				*p.bucket(s.hash) = *s
			}
		}
	}
	s := p.bucket(hash)
	if s.run == nil {
		p.used++
	}
	*s = bucket{hash, l}
}
