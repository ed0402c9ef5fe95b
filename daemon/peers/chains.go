package peers

import "sync"

const (
	// anchorEvery is the distance between the blocks by which the inside of a chain is found. A chain that leaves
	// another one between two of them repeats at most 15 hashes, 120 bytes, and one block in 16 costs a table entry.
	anchorEvery = 16
	// maxGeneration bounds the hashes of one generation: 8 MB, and with three of them some 40 MB a pool.
	maxGeneration = 1 << 20
	// maxPositions bounds the entries of one generation. They are a sixth of the hashes or fewer, unless each chain adds
	// only one or two hashes. A table that grew beyond this would make a request wait for milliseconds.
	maxPositions = maxGeneration / 4
	generations  = 3
)

// chains remembers the chains that any router has sent in one stream. A message names the beginning of a chain by the
// last hash of that beginning, and chains finds the rest. All routers read the same stream in the same order, and a
// router that writes has read. So every receiver finds what the sender has found.
//
// chains forgets by generations. It finds chains of an old generation, but does not name them any more (see floor). So
// a chain is sent in full again before the first receiver has forgotten it, and before the stream has lost it. Safe for
// concurrent use.
type chains struct {
	mu     sync.Mutex // guards all below
	gens   [generations]positions
	gen    uint32 // the number of gens[0]
	blocks int    // hashes in gens[0]
	floor  uint32 // a chain whose beginning was sent in an older generation is not named

	room []uint64 // for the result of enterReceived
}

func newChains() *chains {
	c := &chains{}
	for i := range c.gens {
		c.gens[i] = newPositions(0)
	}
	return c
}

// enterSent enters a chain and returns how to name it: the hash and depth of the beginning that the receivers have, 0
// if they have none, and the hashes after that beginning, which are a part of chain. The chain goes on where hint ends;
// an empty hint means that the position has to be searched. end is the position where the chain ends, a hint for its
// continuation.
func (c *chains) enterSent(chain []uint64, hint position) (end position, parent uint64, depth int, rest []uint64) {
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

// begins reports whether the chain begins like the stored one up to the position, and whether that beginning may be
// named. A hash stands for all before it.
func (c *chains) begins(l position, chain []uint64) bool {
	d := l.depth()
	return d > 0 && d <= len(chain) && l.run.root >= c.floor && chain[d-1] == l.run.hashes[l.n-1]
}

// enterReceived enters a chain that another router sent and returns the whole of it. The result is valid until the next
// call and must not be changed. It returns false if the beginning is unknown.
func (c *chains) enterReceived(parent uint64, depth int, rest []uint64) ([]uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var at position
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

// sendInFull makes enterSent name no beginning of the chains so far, so that they are sent in full: the messages before
// did not reach everybody.
func (c *chains) sendInFull() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn()
	c.floor = c.gen
}

// age begins a new generation; the caller keeps the time.
func (c *chains) age() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn()
}

// held returns the number of hashes in the newest generation.
func (c *chains) held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocks
}

func (c *chains) turn() {
	copy(c.gens[1:], c.gens[:])
	c.gens[0] = newPositions(c.gens[1].used) // about as many will be sent again
	c.gen++
	c.blocks = 0
	c.floor = max(c.floor, c.gen-1)
}

// deepest returns the longest beginning of chain that may be named, as far as it finds one. If a block is known, the
// anchors before it are known too. So a search for the last known anchor finds it, from the end, since most of a chat
// was sent before. From that anchor on, the run shows how far both agree.
func (c *chains) deepest(chain []uint64) (at position) {
	if n := len(chain); n > 0 { // the whole chain was sent before
		if l, ok := c.named(chain[n-1]); ok && l.depth() == n {
			return l
		}
	}
	hi := len(chain) / anchorEvery // anchors up to lo are known, those after hi are not
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

// along follows the chain from a position to the end of its run, or as far as both agree if that position may be named.
func (c *chains) along(at position, chain []uint64) position {
	more, rest := at.run.hashes[at.n:], chain[at.depth():]
	n := 0
	for n < min(len(more), len(rest)) && more[n] == rest[n] {
		n++
	}
	if n == len(more) {
		return position{at.run, at.n + n}
	}
	if n > 0 {
		if l, ok := c.named(rest[n-1]); ok && l.depth() == at.depth()+n {
			return l
		}
	}
	return at
}

// shallow is deepest for a chain without a known anchor: it finds the end of a short chain that begins this one.
func (c *chains) shallow(chain []uint64) position {
	for d := min(len(chain), anchorEvery-1); d > 0; d-- {
		if l, ok := c.named(chain[d-1]); ok && l.depth() == d {
			return l
		}
	}
	return position{}
}

// named is find for positions that may be named to other routers.
func (c *chains) named(hash uint64) (position, bool) {
	l, ok := c.find(hash)
	return l, ok && l.run.root >= c.floor
}

func (c *chains) find(hash uint64) (position, bool) {
	for i := range c.gens {
		if l, ok := c.gens[i].get(hash); ok {
			return l, true
		}
	}
	return position{}, false
}

// enter adds hashes after a position, and returns the position where they end.
func (c *chains) enter(at position, hashes []uint64) position {
	if len(hashes) == 0 {
		return at
	}
	if c.blocks >= maxGeneration || c.gens[0].used >= maxPositions {
		c.turn()
	}
	r, from := at.run, at.n
	if r == nil || from < len(r.hashes) { // the run goes on differently here
		r, from = &run{before: at, depth: at.depth(), root: c.gen}, 0
		if at.run != nil {
			r.root = at.run.root
		}
	}
	r.hashes = grow(r.hashes, hashes)
	c.blocks += len(hashes)
	young, end := &c.gens[0], position{r, len(r.hashes)}
	for n := from + anchorEvery - (r.depth+from)%anchorEvery; n < end.n; n += anchorEvery {
		young.put(r.hashes[n-1], position{r, n})
	}
	young.put(r.hashes[end.n-1], end)
	return end
}

// grow appends hashes to those of a run, and leaves half as much spare room if the run had any hashes: a chat goes on,
// and slices of its earlier hashes stay valid.
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

// linkedChain writes a chain, and names the beginning that the receivers have.
func (w *writer) linkedChain(c *chains, chain []uint64, hint position) (end position) {
	end, parent, depth, rest := c.enterSent(chain, hint)
	w.chain(parent, depth, rest)
	return end
}
