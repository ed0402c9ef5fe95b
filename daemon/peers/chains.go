package peers

import (
	"slices"
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

	room []uint64 // for the hashes of the next runs
}

// hashesAtOnce is how many hashes share a piece of memory, which lasts as long as any run of them. Runs share none:
// they name each other, so a new one would keep all that ever were.
const hashesAtOnce = 2048

// run is a piece of a chain as it was told.
type run struct {
	before place
	depth  int // blocks before it
	hashes []uint64
	root   uint32 // generation in which the first block of the chain was told
	next   *run   // the newest run after the end of this one
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
// none, and the hashes after it. They are a part of chain. The chain goes on where hint ends, or it is not known where.
// It returns where the chain ends, as a hint for what follows it.
func (c *chains) tell(chain []uint64, hint place) (end place, parent uint64, depth int, rest []uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := hint
	if !c.begins(hint, chain) {
		at = c.deepest(chain)
	}
	depth = at.depth()
	if depth > 0 {
		parent = chain[depth-1]
	}
	rest = chain[depth:]
	return c.enter(at, rest), parent, depth, rest
}

// begins reports whether the chain begins as one does up to the place, and may be named so. A hash stands for all
// before it.
func (c *chains) begins(l place, chain []uint64) bool {
	d := l.depth()
	return d > 0 && d <= len(chain) && l.run.root >= c.floor && chain[d-1] == l.run.hashes[l.n-1]
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
	c.gens[0] = make(map[uint64]place, len(c.gens[1])) // as much will be told again
	c.gen++
	c.blocks = 0
	c.floor = max(c.floor, c.gen-1)
}

// deepest returns the longest beginning of chain that may be named, as far as it finds one. If a block is known, so are
// the anchors before it: a search for the last known anchor finds it, from the end, as most of a chat was told before.
// From there the runs themselves say how far they agree, at no look into a map. Of several runs that go on from one end
// it follows the newest: to repeat the others' hashes is cheaper than to look for each.
func (c *chains) deepest(chain []uint64) (at place) {
	if n := len(chain); n > 0 { // it was told before as it is
		if l, ok := c.named(chain[n-1]); ok && l.depth() == n {
			return l
		}
	}
	hi := len(chain) / anchorEvery // anchors up to hi may be known, those up to lo are
	lo := 0
	for step := 1; lo < hi; step *= 2 {
		i := max(lo+1, hi-step+1)
		l, ok := c.named(chain[i*anchorEvery-1])
		if ok && l.depth() == i*anchorEvery {
			lo, at = i, l
			break
		}
		hi = i - 1
	}
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if l, ok := c.named(chain[mid*anchorEvery-1]); ok && l.depth() == mid*anchorEvery {
			lo, at = mid, l
		} else {
			hi = mid - 1
		}
	}
	if at.run == nil {
		return c.shallow(chain)
	}
	for r, n := at.run, at.n; r != nil && r.root >= c.floor; r, n = r.next, 0 {
		more := r.hashes[n:]
		d := r.depth + n
		if len(more) > len(chain)-d || !slices.Equal(more, chain[d:d+len(more)]) {
			break
		}
		at = place{r, len(r.hashes)}
	}
	return at
}

// shallow is deepest for a chain of which no anchor is known: the end of a short chain that begins it.
func (c *chains) shallow(chain []uint64) place {
	for d := min(len(chain), anchorEvery-1); d > 0; d-- {
		if l, ok := c.named(chain[d-1]); ok && l.depth() == d {
			return l
		}
	}
	return place{}
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

// enter adds hashes after a place, and returns their end.
func (c *chains) enter(at place, hashes []uint64) place {
	if len(hashes) == 0 {
		return at
	}
	if c.blocks >= maxGeneration {
		c.turn()
	}
	r := &run{before: at, depth: at.depth(), hashes: c.kept(hashes), root: c.gen}
	if at.run != nil {
		r.root = at.run.root
		if at.n == len(at.run.hashes) {
			at.run.next = r
		}
	}
	c.blocks += len(hashes)
	young := c.gens[0]
	for n := anchorEvery - r.depth%anchorEvery; n < len(hashes); n += anchorEvery {
		young[hashes[n-1]] = place{r, n}
	}
	end := place{r, len(hashes)}
	young[hashes[len(hashes)-1]] = end
	return end
}

// kept copies hashes to where they stay.
func (c *chains) kept(hashes []uint64) []uint64 {
	n := len(hashes)
	if len(c.room) < n {
		c.room = make([]uint64, max(hashesAtOnce, n))
	}
	all := c.room[:n:n]
	c.room = c.room[n:]
	copy(all, hashes)
	return all
}

// told writes a chain of which what others know is named.
func (w *writer) told(c *chains, chain []uint64, hint place) (end place) {
	end, parent, depth, rest := c.tell(chain, hint)
	w.chain(parent, depth, rest)
	return end
}
