package sdk

import (
	"math"
	"math/bits"
)

// draw returns a fresh number of the request: Random, mixed with how often it was asked.
func (r *Request) draw() uint64 {
	r.drawn++
	return mix(r.Random + r.drawn*0x9e3779b97f4a7c15)
}

// Pick returns one of 0 to n-1 by chance, another at each call; 0 for n below 2. So [To](r.Pick(len(workers))) is
// random, and the better of two picks is the power of two choices.
func (r *Request) Pick(n int) int {
	hi, _ := bits.Mul64(r.draw(), uint64(max(n, 0)))
	return int(hi)
}

// Chance reports true with probability p, independently at each call.
func (r *Request) Chance(p float64) bool { return float64(r.draw()>>11)/(1<<53) < p }

// Hash is the number of a text that [Request].Model, Session, Tenant and Caller are of theirs: FNV-1a, the same over
// restarts and routers. It is 0 for the empty text alone.
func Hash(text string) uint64 {
	if text == "" {
		return 0
	}
	h := uint64(0xcbf29ce484222325)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 0x100000001b3
	}
	return max(1, h)
}

// Place returns the rank of worker w for what has the hash, as [Hash] or [Request].Session: the worker of the greatest
// is its place (rendezvous hashing). All routers agree on it. If a worker leaves, only what it had moves; a worker of
// twice the weight is the place of twice as many. It is from 0 to 1.
func Place(hash uint64, w *Worker) float64 {
	u := float64(mix(hash^w.Key)>>11) / (1 << 53)
	if w.Weight > 0 && w.Weight != 1 {
		return math.Pow(u, 1/float64(w.Weight))
	}
	return u
}

// mix is the finalizer of MurmurHash3 with Stafford's constants (mix 13): each input bit changes half of the output's.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
