package lmcache

import (
	"encoding/binary"
	"math/bits"
)

// CPython's hash() of the values that LMCache hashes: int, tuple, str and None, as of CPython 3.12 (Python/pyhash.c,
// Objects/tupleobject.c). Those of int and tuple depend on nothing; that of str depends on PYTHONHASHSEED.

const (
	pyModulus = 1<<61 - 1 // _PyHASH_MODULUS
	xxPrime1  = 11400714785074694791
	xxPrime2  = 14029467366897019727
	xxPrime5  = 2870177450012600261

	hashOfNone  = 0xfca86420          // a constant since 3.12; an address before, so those keys cannot be known
	hashOfEmpty = 5740354900026072187 // hash(())
)

// pyTuple is the hash of a tuple under way.
type pyTuple struct{ acc, n uint64 }

func newTuple() pyTuple { return pyTuple{acc: xxPrime5} }

// add takes the hash of the tuple's next item.
func (t *pyTuple) add(h uint64) {
	t.acc = bits.RotateLeft64(t.acc+h*xxPrime2, 31) * xxPrime1
	t.n++
}

func (t *pyTuple) sum() uint64 {
	if h := t.acc + (t.n ^ (xxPrime5 ^ 3527539)); h != ^uint64(0) {
		return h
	}
	return 1546275796
}

// pyInt returns hash(v).
func pyInt(v int64) uint64 {
	switch {
	case v == -1:
		return ^uint64(1) // -2
	case v >= 0:
		return uint64(v) % pyModulus
	}
	// -v is right for the smallest int64 too, as numbers are in two's complement. No remainder of 0 to 2^61-2 but 1
	// gives -1.
	if r := -uint64(v) % pyModulus; r != 1 {
		return -r
	}
	return ^uint64(1)
}

// pyString returns hash(s) of an ASCII string, which is not empty, under PYTHONHASHSEED=seed: SipHash-1-3, keyed with
// the generator by which CPython stretches the seed (Python/bootstrap_hash.c). Seed 0 is the key of zeros.
func pyString(s string, seed uint32) uint64 {
	var key [16]byte
	if seed != 0 {
		x := seed
		for i := range key {
			x = x*214013 + 2531011
			key[i] = byte(x >> 16)
		}
	}
	h := sipHash13(binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:]), s)
	if h == ^uint64(0) {
		return ^uint64(1)
	}
	return h
}

// sipHash13 is SipHash with one round a word and three at the end.
func sipHash13(k0, k1 uint64, s string) uint64 {
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	last := uint64(len(s)) << 56
	for ; len(s) >= 8; s = s[8:] {
		m := binary.LittleEndian.Uint64([]byte(s[:8]))
		v[3] ^= m
		sipRound(&v)
		v[0] ^= m
	}
	for i := range len(s) {
		last |= uint64(s[i]) << (8 * i)
	}
	v[3] ^= last
	sipRound(&v)
	v[0] ^= last
	v[2] ^= 0xff
	for range 3 {
		sipRound(&v)
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func sipRound(v *[4]uint64) {
	v[0] += v[1]
	v[2] += v[3]
	v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
	v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
	v[0] = bits.RotateLeft64(v[0], 32)
	v[2] += v[1]
	v[0] += v[3]
	v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
	v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
	v[2] = bits.RotateLeft64(v[2], 32)
}
