package peers

import "sync"

const (
	// anchorEvery is how far apart the blocks of a chain are by which its inside is found. A chain that leaves another in
	// between repeats at most 15 hashes, 120 bytes, and one block in 16 costs an entry in a table.
	anchorEvery = 16
	// maxGeneration is the hashes of one generation: 8 MB, and with three of them some 40 MB a pool.
	maxGeneration = 1 << 20
	// maxPlaces is the entries of one generation, which are a sixth of the hashes or fewer, unless each chain adds but one
	// or two: a table that grows to more would have a request wait for milliseconds.
	maxPlaces   = maxGeneration / 4
	generations = 3
)

// chains remembers the chains that were told in one stream, by whomever. A message names the beginning of a chain by
// the last hash of it, and chains finds the rest. All routers read the same stream in the same order, and who writes
// has read, so what a sender finds here its hearers have too.
//
// It forgets by generations. What is found of an old one is not named any more (see floor), so that a chain is told in
// full again before the first hearer has forgotten it, and before the stream has lost it. Safe for concurrent use.
type chains struct {
	mu     sync.Mutex // guards all below
	gens   [generations]places
	gen    uint32 // the number of gens[0]
	blocks int    // hashes in gens[0]
	floor  uint32 // a chain whose beginning was told in an older generation is not named

	room []uint64 // for what hear returns
}

func newChains() *chains {
	c := &chains{}
	for i := range c.gens {
		c.gens[i] = newPlaces(0)
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

// hear enters what another router told, and returns the whole chain, which is valid until the next call and not to be
// changed. It reports false if the beginning is not known.
func (c *chains) hear(parent uint64, depth int, rest []uint64) ([]uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var at place
	if parent != 0 || depth != 0 {
		var ok bool
		at, ok = c.find(parent)
		if !ok || at.depth() != depth {
			return nil, false
		}
	}
	end := c.enter(at, rest)
	if end.run != nil && end.run.depth == 0 {
		return end.run.hashes[:end.n:end.n], true
	}
	c.room = end.full(c.room)
	return c.room, true
}

// warm reads where so many hashes are or will be, all at once. It returns a sum of what it read, or the compiler would
// leave the reading out.
func (c *chains) warm(hashes []uint64) (sum uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.gens {
		if g := &c.gens[i]; g.used > 0 {
			for _, h := range hashes {
				sum += g.slots[g.home(h)].hash
			}
		}
	}
	for _, h := range hashes {
		if l, ok := c.gens[0].get(h); ok {
			sum += uint64(l.run.depth)
		}
	}
	for _, h := range hashes {
		if l, ok := c.gens[0].get(h); ok {
			sum += l.run.hashes[l.n-1]
			if up := l.run.before.run; up != nil {
				sum += uint64(up.depth)
			}
		}
	}
	return sum
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
	c.gens[0] = newPlaces(c.gens[1].used) // as much will be told again
	c.gen++
	c.blocks = 0
	c.floor = max(c.floor, c.gen-1)
}

// deepest returns the longest beginning of chain that may be named, as far as it finds one. If a block is known, so are
// the anchors before it: a search for the last known anchor finds it, from the end, as most of a chat was told before.
// From there the run itself says how far it agrees.
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
	return c.along(at, chain)
}

// along goes on from a place in the chain to where its run ends, or else as far as both agree if that may be named.
func (c *chains) along(at place, chain []uint64) place {
	more, rest := at.run.hashes[at.n:], chain[at.depth():]
	n := 0
	for n < min(len(more), len(rest)) && more[n] == rest[n] {
		n++
	}
	if n == len(more) {
		return place{at.run, at.n + n}
	}
	if n > 0 {
		if l, ok := c.named(rest[n-1]); ok && l.depth() == at.depth()+n {
			return l
		}
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
		if l, ok := c.gens[i].get(hash); ok {
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
	if c.blocks >= maxGeneration || c.gens[0].used >= maxPlaces {
		c.turn()
	}
	r, from := at.run, at.n
	if r == nil || from < len(r.hashes) { // what follows it differs
		r, from = &run{before: at, depth: at.depth(), root: c.gen}, 0
		if at.run != nil {
			r.root = at.run.root
		}
	}
	r.hashes = grow(r.hashes, hashes)
	c.blocks += len(hashes)
	young, end := &c.gens[0], place{r, len(r.hashes)}
	for n := from + anchorEvery - (r.depth+from)%anchorEvery; n < end.n; n += anchorEvery {
		young.put(r.hashes[n-1], place{r, n})
	}
	young.put(r.hashes[end.n-1], end)
	return end
}

// grow appends hashes to those of a run, with half of it to spare if there were any: a chat goes on, and what was told
// of it before stays valid.
func grow(old, more []uint64) []uint64 {
	if need := len(old) + len(more); need > cap(old) {
		spare := need / 2
		if len(old) == 0 {
			spare = 0
		}
		old = append(make([]uint64, 0, need+spare), old...)
	}
	return append(old, more...)
}

// told writes a chain of which what others know is named.
func (w *writer) told(c *chains, chain []uint64, hint place) (end place) {
	end, parent, depth, rest := c.tell(chain, hint)
	w.chain(parent, depth, rest)
	return end
}
