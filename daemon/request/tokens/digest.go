package tokens

import "hash/maphash"

// digest identifies a text in the cache. It is two hashes with seeds that are secret to this process: a client cannot
// prepare two texts with one digest, and by chance two of a billion texts share one once in 10^20 years of them.
type digest [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// digestOf returns the digest of some bytes.
func digestOf(b []byte) digest { return digest{maphash.Bytes(seeds[0], b), maphash.Bytes(seeds[1], b)} }

// then returns the digest of d followed by a value.
func (d digest) then(value digest) digest {
	var b [32]byte
	for i, v := range [4]uint64{d[0], d[1], value[0], value[1]} {
		for k := range 8 {
			b[8*i+k] = byte(v >> (8 * k))
		}
	}
	return digestOf(b[:])
}

// plus returns a digest of both that does not depend on their order.
func (d digest) plus(other digest) digest { return digest{d[0] + other[0], d[1] + other[1]} }
