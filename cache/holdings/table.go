package holdings

import (
	"math/bits"

	"github.com/warmpath/warmpath/cache/blocks"
)

// slot is what a worker's engine hash leads to.
type slot struct {
	hash uint64
	id   uint32 // of the place; 0 = the slot is free
	// meta is offset<<20 | copies on the GPU<<10 | copies in Local. A count of mostCopies goes on in worker.many.
	meta uint32
}

const (
	offsetShift = 20
	copyBits    = 10
	mostCopies  = 1<<copyBits - 1
	pending     = ^uint32(0) // id of a slot whose place is not known yet
)

func (s *slot) offset() int { return int(s.meta >> offsetShift) }

// shift is where the count of a tier stands in meta.
func shift(t blocks.Medium) uint { return copyBits * uint(1-t) }

func (s *slot) copies(t blocks.Medium) uint32 { return s.meta >> shift(t) & mostCopies }

func (s *slot) settle(id uint32, offset int) {
	s.id = id
	s.meta |= uint32(offset) << offsetShift
}

// table is a map of engine hashes with open addressing. It grows by half, not by two, so that it is never emptier than
// half: that is the larger part of what a held block costs. Not safe for concurrent use.
type table struct {
	slots []slot
	n     int
	// The two are secret: a worker that picks its hashes cannot make all of them meet.
	flip, odd uint64
}

const leastSlots = 16

// home is where a hash belongs. The product's high bits depend on all bits of the hash.
func (t *table) home(hash uint64) int {
	i, _ := bits.Mul64((hash^t.flip)*t.odd, uint64(len(t.slots)))
	return int(i)
}

// find returns the slot of a hash, -1 if it is not there.
func (t *table) find(hash uint64) int {
	if t.n == 0 {
		return -1
	}
	for i := t.home(hash); ; {
		s := &t.slots[i]
		if s.id == 0 {
			return -1
		}
		if s.hash == hash {
			return i
		}
		i++
		if i == len(t.slots) {
			i = 0
		}
	}
}

// touch reads where the hashes belong and returns a number of no meaning. The reads do not wait for each other, as
// those of find and put do, whose loops end where the processor does not foresee it.
func (t *table) touch(hashes []uint64) (sum uint64) {
	if len(t.slots) == 0 {
		return 0
	}
	for _, h := range hashes {
		sum += t.slots[t.home(h)].hash
	}
	return sum
}

// reserve makes room for n more: until they are there, put moves nothing.
func (t *table) reserve(n int) {
	if need := t.n + n; need > len(t.slots)/5*4 {
		t.resize(max(need+need/4+5, len(t.slots)+len(t.slots)/2, leastSlots))
	}
}

// put returns the slot of a hash and whether it was there. A new one is pending, with no copies. There is room.
func (t *table) put(hash uint64) (at int, was bool) {
	i := t.home(hash)
	for ; t.slots[i].id != 0; i++ {
		if t.slots[i].hash == hash {
			return i, true
		}
		if i == len(t.slots)-1 {
			i = -1
		}
	}
	t.slots[i] = slot{hash: hash, id: pending}
	t.n++
	return i, false
}

// remove frees a slot and moves back what stands further on because of it.
func (t *table) remove(hole int) {
	t.n--
	for i := hole; ; {
		i++
		if i == len(t.slots) {
			i = 0
		}
		if t.slots[i].id == 0 {
			break
		}
		// It stays if its home is after the hole, in the ring.
		home := t.home(t.slots[i].hash)
		if hole < i && hole < home && home <= i || i < hole && (hole < home || home <= i) {
			continue
		}
		t.slots[hole] = t.slots[i]
		hole = i
	}
	t.slots[hole] = slot{}
}

// shrink gives memory back when three quarters are free.
func (t *table) shrink() {
	switch {
	case t.n == 0:
		t.slots = nil
	case len(t.slots) > leastSlots && t.n < len(t.slots)/4:
		t.resize(max(2*t.n, leastSlots))
	}
}

// resize copies in the order of the homes, which both sizes share, so it reads and writes from front to back.
func (t *table) resize(size int) {
	old := t.slots
	t.slots = make([]slot, size)
	for k := range old {
		if old[k].id == 0 {
			continue
		}
		i := t.home(old[k].hash)
		for t.slots[i].id != 0 {
			i++
			if i == size {
				i = 0
			}
		}
		t.slots[i] = old[k]
	}
}
