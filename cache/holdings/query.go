package holdings

import (
	"strings"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// link returns the hash of a block that follows the block of hash prev. The bytes are hashed as they lie in memory,
// since no hash leaves the process.
func link(prev uint64, block []uint32) uint64 {
	return xxh3.HashSeed(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(block))), 4*len(block)), prev)
}

// appendChain appends the hashes of the whole blocks of ids.
func appendChain(to []uint64, prev uint64, ids []uint32, size int) []uint64 {
	for ; len(ids) >= size; ids = ids[size:] {
		prev = link(prev, ids[:size])
		to = append(to, prev)
	}
	return to
}

// Query is one request's ids and what has been hashed of them, once for each block size. It is reused from request to
// request. Not safe for concurrent use.
type Query struct {
	adapter, salt, key string
	ids                []uint32
	seed               uint64
	chains             []chain
}

// chain is the ids hashed in blocks of one size.
type chain struct {
	size   int
	hashes []uint64
}

// Reset begins a request: adapter is the LoRA adapter's name and salt the request's cache_salt, "" if there is none.
// The ids are those of the engine for the whole prompt. They must not change until the next Reset.
func (q *Query) Reset(adapter, salt string, ids []uint32) {
	if q.key == "" || adapter != q.adapter || salt != q.salt {
		q.adapter = strings.Clone(adapter) // which may be part of a request's body
		q.salt = strings.Clone(salt)
		q.key = keyOf(adapter, salt)
	}
	q.ids = ids
	q.chains = q.chains[:0]
}

// hashes returns the chain for a block size, of all whole blocks.
func (q *Query) hashes(seed uint64, size int) []uint64 {
	if seed != q.seed { // it has met another index
		q.seed = seed
		q.chains = q.chains[:0]
	}
	for i := range q.chains {
		if q.chains[i].size == size {
			return q.chains[i].hashes
		}
	}
	n := len(q.chains)
	if n < cap(q.chains) {
		q.chains = q.chains[:n+1] // with the memory of an earlier request
	} else {
		q.chains = append(q.chains, chain{})
	}
	c := &q.chains[n]
	c.size = size
	c.hashes = appendChain(c.hashes[:0], seed, q.ids, size)
	return c.hashes
}

// usable is how many blocks an engine may take from its cache: it computes one token at least.
func (q *Query) usable(size int) int { return max(0, len(q.ids)-1) / size }
