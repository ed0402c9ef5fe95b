package engine

// blockPool is vLLM's BlockPool: a fixed set of KV blocks. The free ones stand in a queue, in the order in which they
// will be taken. The full ones are found by hash until they are reused.
//
// A router can see each of these habits of vLLM's, so they are kept. Block 0 is the null block and is never given
// out. A free block keeps its content until it is taken from the head of the queue. Blocks are freed last first, so a
// prefix outlives its continuation. Identical blocks are not merged, so one hash may stand for several blocks.
type blockPool struct {
	blocks  []block
	byHash  map[uint64]int32 // first block of the hash; the others hang on its same
	head    int32            // of the free queue, 0 when empty
	tail    int32
	free    int
	cached  int    // blocks that carry a hash
	weights uint32 // what computes the blocks that are entered from now on
	log     changeLog
}

type block struct {
	hash       uint64
	prev, next int32 // in the free queue
	same       int32 // next block of the same hash
	refs       int32
	weights    uint32 // that have computed it, while full
	full       bool   // hash is valid and byHash knows it
}

func newBlockPool(n int) *blockPool {
	p := &blockPool{blocks: make([]block, n), byHash: make(map[uint64]int32)}
	for i := 1; i < n; i++ {
		p.push(int32(i))
	}
	return p
}

// usable returns the number of blocks that sequences can hold.
func (p *blockPool) usable() int { return len(p.blocks) - 1 }

// push puts a block at the end of the free queue.
func (p *blockPool) push(i int32) {
	b := &p.blocks[i]
	b.prev = p.tail
	b.next = 0
	if p.tail == 0 {
		p.head = i
	} else {
		p.blocks[p.tail].next = i
	}
	p.tail = i
	p.free++
}

// pushFront puts a block at the head of the free queue.
func (p *blockPool) pushFront(i int32) {
	b := &p.blocks[i]
	b.prev = 0
	b.next = p.head
	if p.head == 0 {
		p.tail = i
	} else {
		p.blocks[p.head].prev = i
	}
	p.head = i
	p.free++
}

// unlink takes a block out of the free queue.
func (p *blockPool) unlink(i int32) {
	b := &p.blocks[i]
	if b.prev == 0 {
		p.head = b.next
	} else {
		p.blocks[b.prev].next = b.next
	}
	if b.next == 0 {
		p.tail = b.prev
	} else {
		p.blocks[b.next].prev = b.prev
	}
	b.prev = 0
	b.next = 0
	p.free--
}

// match appends the leading blocks of the chain that are held. It counts those of them that lie in the free queue.
func (p *blockPool) match(hashes []uint64, held []int32) (_ []int32, idle int) {
	for _, h := range hashes {
		i, ok := p.byHash[h]
		if !ok {
			break
		}
		if p.blocks[i].refs == 0 {
			idle++
		}
		held = append(held, i)
	}
	return held, idle
}

// hold takes a reference on blocks that match has found.
func (p *blockPool) hold(held []int32) {
	for _, i := range held {
		if p.blocks[i].refs == 0 {
			p.unlink(i)
		}
		p.blocks[i].refs++
	}
}

// pop appends n blocks from the head of the free queue and forgets what they held, one change for each. The caller has
// checked p.free.
func (p *blockPool) pop(n int, to []int32) []int32 {
	for range n {
		i := p.head
		p.unlink(i)
		if p.blocks[i].full {
			p.log.removed(OnGPU, p.blocks[i].hash)
		}
		p.forget(i)
		p.blocks[i].refs = 1
		to = append(to, i)
	}
	return to
}

// enter makes a full block findable by its hash.
func (p *blockPool) enter(i int32, hash uint64) {
	b := &p.blocks[i]
	b.hash = hash
	b.weights = p.weights
	b.full = true
	b.same = 0
	p.cached++
	first, ok := p.byHash[hash]
	if !ok {
		p.byHash[hash] = i
		return
	}
	for p.blocks[first].same != 0 {
		first = p.blocks[first].same
	}
	p.blocks[first].same = i
}

// forget makes a block unfindable.
func (p *blockPool) forget(i int32) {
	b := &p.blocks[i]
	if !b.full {
		return
	}
	b.full = false
	p.cached--
	first := p.byHash[b.hash]
	switch {
	case first != i:
		for p.blocks[first].same != i {
			first = p.blocks[first].same
		}
		p.blocks[first].same = b.same
	case b.same != 0:
		p.byHash[b.hash] = b.same
	default:
		delete(p.byHash, b.hash)
	}
	b.same = 0
}

// release drops the references of a sequence, last block first, so that the leaf is the first to be taken. A block
// without content, as the last one of most sequences, is taken before all others: TestRecordedRequests needs that, and
// vLLM 0.19 did not do so.
func (p *blockPool) release(held []int32) {
	for k := len(held) - 1; k >= 0; k-- {
		i := held[k]
		p.blocks[i].refs--
		switch {
		case p.blocks[i].refs > 0:
		case p.blocks[i].full:
			p.push(i)
		default:
			p.pushFront(i)
		}
	}
}

// reset forgets all content. tiers is true if the tiers behind it forget theirs. It returns false, and forgets nothing,
// while a sequence holds a block.
func (p *blockPool) reset(tiers bool) bool {
	if p.free != p.usable() {
		return false
	}
	for i := range p.blocks {
		p.blocks[i].full = false
		p.blocks[i].same = 0
	}
	clear(p.byHash)
	p.cached = 0
	p.log.cleared(tiers)
	return true
}
