package holdings

import (
	"math/bits"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// bucket is what a worker's engine hash leads to.
type bucket struct {
	hash uint64
	id   uint32 // of the place; 0 = the bucket is free
	// meta is offset<<20 | copies on the GPU<<10 | copies in Local. A count of mostCopies goes on in worker.many.
	meta uint32
}

const (
	offsetShift = 20
	copyBits    = 10
	mostCopies  = 1<<copyBits - 1
	pending     = ^uint32(0) // id of a bucket whose place is not known yet
)

func (b *bucket) offset() int { return int(b.meta >> offsetShift) }

// shift is where the count of a tier stands in meta.
func shift(t blocks.Medium) uint { return copyBits * uint(1-t) }

func (b *bucket) copies(t blocks.Medium) uint32 { return b.meta >> shift(t) & mostCopies }

func (b *bucket) settle(id uint32, offset int) {
	b.id = id
	b.meta |= uint32(offset) << offsetShift
}

// table is a map of engine hashes with open addressing. It grows by half, not by two, so that it is never emptier than
// half: that is the larger part of what a held block costs. Not safe for concurrent use.
type table struct {
	buckets []bucket
	n       int
	// The two are secret: a worker that picks its hashes cannot make all of them meet.
	flip, odd uint64
}

const leastBuckets = 16

// home is where a hash belongs. The product's high bits depend on all bits of the hash.
func (t *table) home(hash uint64) int {
	i, _ := bits.Mul64((hash^t.flip)*t.odd, uint64(len(t.buckets)))
	return int(i)
}

// find returns the bucket of a hash, -1 if it is not there.
func (t *table) find(hash uint64) int {
	if t.n == 0 {
		return -1
	}
	for i := t.home(hash); ; {
		s := &t.buckets[i]
		if s.id == 0 {
			return -1
		}
		if s.hash == hash {
			return i
		}
		i++
		if i == len(t.buckets) {
			i = 0
		}
	}
}

// touch reads where the hashes belong and returns a number of no meaning. The reads do not wait for each other, as
// those of find and put do, whose loops end where the processor does not foresee it.
func (t *table) touch(hashes []uint64) (sum uint64) {
	if len(t.buckets) == 0 {
		return 0
	}
	for _, h := range hashes {
		sum += t.buckets[t.home(h)].hash
	}
	return sum
}

// reserve makes room for n more: until they are there, put moves nothing.
func (t *table) reserve(n int) {
	if need := t.n + n; need > len(t.buckets)/5*4 {
		t.resize(max(need+need/4+5, len(t.buckets)+len(t.buckets)/2, leastBuckets))
	}
}

// put returns the bucket of a hash and whether it was there. A new one is pending, with no copies. There is room.
func (t *table) put(hash uint64) (at int, was bool) {
	i := t.home(hash)
	for ; t.buckets[i].id != 0; i++ {
		if t.buckets[i].hash == hash {
			return i, true
		}
		if i == len(t.buckets)-1 {
			i = -1
		}
	}
	t.buckets[i] = bucket{hash: hash, id: pending}
	t.n++
	return i, false
}

// remove frees a bucket and moves back what stands further on because of it.
func (t *table) remove(hole int) {
	t.n--
	for i := hole; ; {
		i++
		if i == len(t.buckets) {
			i = 0
		}
		if t.buckets[i].id == 0 {
			break
		}
		// It stays if its home is after the hole, in the ring.
		home := t.home(t.buckets[i].hash)
		if hole < i && hole < home && home <= i || i < hole && (hole < home || home <= i) {
			continue
		}
		t.buckets[hole] = t.buckets[i]
		hole = i
	}
	t.buckets[hole] = bucket{}
}

// shrink gives memory back when three quarters are free.
func (t *table) shrink() {
	switch {
	case t.n == 0:
		t.buckets = nil
	case len(t.buckets) > leastBuckets && t.n < len(t.buckets)/4:
		t.resize(max(2*t.n, leastBuckets))
	}
}

// resize copies in the order of the homes, which both sizes share, so it reads and writes from front to back.
func (t *table) resize(size int) {
	old := t.buckets
	t.buckets = make([]bucket, size)
	for k := range old {
		if old[k].id == 0 {
			continue
		}
		i := t.home(old[k].hash)
		for t.buckets[i].id != 0 {
			i++
			if i == size {
				i = 0
			}
		}
		t.buckets[i] = old[k]
	}
}
