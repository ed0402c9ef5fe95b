package lmworker

import "math/bits"

// noneHash is hash("0") at PYTHONHASHSEED=0, the parent of every first chunk in a process with vLLM.
const noneHash = 5313149338359954478

// The hashes of Python values that stand for the extra keys of a chunk.
const (
	hashOfEmptyTuple = 5740354900026072187
	hashOfNone       = 0xfca86420 // from Python 3.12 on; an address before
)

// The constants of CPython's tuple hash, which is xxHash's.
const (
	prime1 = 11400714785074694791
	prime2 = 14029467366897019727
	prime5 = 2870177450012600261
)

// tuple is CPython's tuple hash in the making.
type tuple struct {
	acc uint64
	n   uint64
}

func newTuple() tuple { return tuple{acc: prime5} }

// add adds the hash of the next item.
func (t *tuple) add(hash uint64) {
	t.acc = bits.RotateLeft64(t.acc+hash*prime2, 31) * prime1
	t.n++
}

func (t *tuple) sum() uint64 {
	h := t.acc + (t.n ^ (prime5 ^ 3527539))
	if h == ^uint64(0) {
		return 1546275796
	}
	return h
}

// hashInt is CPython's hash of an int.
func hashInt(v int64) uint64 {
	const modulus = 1<<61 - 1
	h := v % modulus
	if h == -1 {
		h = -2
	}
	return uint64(h)
}

// chunkKey returns the key of a chunk behind parent: hash((parent, tokens, extra)).
func chunkKey(parent int64, tokens []uint32, extra uint64) int64 {
	inner := newTuple()
	for _, id := range tokens {
		inner.add(hashInt(int64(id)))
	}
	outer := newTuple()
	outer.add(hashInt(parent))
	outer.add(inner.sum())
	outer.add(extra)
	return int64(outer.sum())
}
