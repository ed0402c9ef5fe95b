package peers

import (
	"sync"
)

const (
	// anchorEvery is how far apart the blocks of a chain are by which its inside is found. A chain that leaves another in
	// between repeats at most 15 hashes, 120 bytes, and one block in 16 costs an entry in a map.
	anchorEvery = 16
	// maxGeneration is the hashes of one generation: 8 MB, and with three of them some 35 MB a pool.
	maxGeneration = 1 << 20
	generations   = 3
)

// chains remembers the chains that were told in one stream, by whomever. A message names the beginning of a chain by
// the last hash of it, and chains finds the rest. All routers read the same stream in the same order, and who writes
// has read, so what a sender finds here its hearers have too.
//
// It forgets by generations. What is found of an old one is not named any more (see floor), so that a chain is told in
// full again before the first hearer has forgotten it, and before the stream has lost it. Safe for concurrent use.
type chains struct {
	mu     sync.Mutex // guards all below
	gens   [generations]map[uint64]place
	gen    uint32 // the number of gens[0]
	blocks int    // hashes in gens[0]
	floor  uint32 // a chain whose beginning was told in an older generation is not named
}

// run is a piece of a chain as it was told.
type run struct {
	before place
	depth  int // blocks before it
	hashes []uint64
	root   uint32 // generation in which the first block of the chain was told
}

// place is where one stands in a chain: after the first n blocks of a run, and all before it.
type place struct {
	run *run
	n   int
}

// depth is the blocks up to the place.
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

func newChains() *chains {
	c := &chains{}
	for i := range c.gens {
		c.gens[i] = map[uint64]place{}
	}
	return c
}

// tell enters a chain and returns how to name it: the hash and depth of the beginning that hearers know, 0 if they know
// none, and the hashes after it. They are a part of chain.
func (c *chains) tell(chain []uint64) (parent uint64, depth int, rest []uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.deepest(chain)
	depth = at.depth()
	if depth > 0 {
		parent = chain[depth-1]
	}
	rest = chain[depth:]
	c.enter(at, rest)
	return parent, depth, rest
}

// hear enters what another router told, and returns the whole chain in room. It reports false if the beginning is not
// known.
func (c *chains) hear(parent uint64, depth int, rest, room []uint64) ([]uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var at place
	if parent != 0 || depth != 0 {
		var ok bool
		at, ok = c.find(parent)
		if !ok || at.depth() != depth {
			return room[:0], false
		}
	}
	room = append(at.full(room), rest...)
	c.enter(at, rest)
	return room, true
}

// restart has everything told in full from now on: what was told before did not reach everybody.
func (c *chains) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn()
	c.floor = c.gen
}

// age begins a new generation, by the clock.
func (c *chains) age() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn()
}

// held is how many hashes are in the newest generation.
func (c *chains) held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocks
}

func (c *chains) turn() {
	copy(c.gens[1:], c.gens[:])
	c.gens[0] = map[uint64]place{}
	c.gen++
	c.blocks = 0
	c.floor = max(c.floor, c.gen-1)
}

// deepest returns the longest beginning of chain that may be named. If a block is known, so are the anchors before it;
// so a search for the last known anchor finds it, and the ends of chains are up to 15 blocks behind.
func (c *chains) deepest(chain []uint64) (at place) {
	lo, hi := 0, len(chain)/anchorEvery // anchors that are known, and may be
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if l, ok := c.named(chain[mid*anchorEvery-1]); ok && l.depth() == mid*anchorEvery {
			lo, at = mid, l
		} else {
			hi = mid - 1
		}
	}
	for d := min(len(chain), lo*anchorEvery+anchorEvery-1); d > lo*anchorEvery; d-- {
		if l, ok := c.named(chain[d-1]); ok && l.depth() == d {
			return l
		}
	}
	return at
}

// named is find for a place that may be named to others.
func (c *chains) named(hash uint64) (place, bool) {
	l, ok := c.find(hash)
	return l, ok && l.run.root >= c.floor
}

func (c *chains) find(hash uint64) (place, bool) {
	for i := range c.gens {
		if l, ok := c.gens[i][hash]; ok {
			return l, true
		}
	}
	return place{}, false
}

// enter adds hashes after a place.
func (c *chains) enter(at place, hashes []uint64) {
	if len(hashes) == 0 {
		return
	}
	if c.blocks >= maxGeneration {
		c.turn()
	}
	r := &run{before: at, depth: at.depth(), hashes: append([]uint64(nil), hashes...), root: c.gen}
	if at.run != nil {
		r.root = at.run.root
	}
	c.blocks += len(hashes)
	young := c.gens[0]
	for n := anchorEvery - r.depth%anchorEvery; n < len(hashes); n += anchorEvery {
		young[hashes[n-1]] = place{r, n}
	}
	young[hashes[len(hashes)-1]] = place{r, len(hashes)}
}
