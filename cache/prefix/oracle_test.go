package prefix

import (
	"math/rand/v2"
)

// oracle is the index by brute force: for each worker, every block that it holds with the order of its last touch. No
// trees.
type oracle struct {
	clock    uint64
	capacity []int
	held     []map[block]uint64 // per slot: block -> order of its last touch
	at       []map[block]int64  // and its time
}

type block struct {
	ns   string
	hash uint64 // chained, so it stands for all blocks before it
}

func newOracle(workers, capacity int) *oracle {
	o := &oracle{capacity: make([]int, workers), held: make([]map[block]uint64, workers), at: make([]map[block]int64, workers)}
	for i := range o.held {
		o.capacity[i] = capacity
		o.held[i] = map[block]uint64{}
		o.at[i] = map[block]int64{}
	}
	return o
}

func (o *oracle) touch(ns string, slot uint32, chain []uint64, now int64) {
	for i := len(chain) - 1; i >= 0; i-- { // leaf first, root last
		o.clock++
		o.held[slot][block{ns, chain[i]}] = o.clock
		o.at[slot][block{ns, chain[i]}] = now
	}
	o.trim(slot)
}

func (o *oracle) trim(slot uint32) {
	h := o.held[slot]
	for len(h) > o.capacity[slot] {
		var oldest block
		at := o.clock + 1
		for b, t := range h {
			if t < at {
				oldest, at = b, t
			}
		}
		delete(h, oldest)
	}
}

// tail returns the time at which the block that is evicted next was last touched.
func (o *oracle) tail(slot uint32) int64 {
	var oldest block
	at := o.clock + 1
	for b, t := range o.held[slot] {
		if t < at {
			oldest, at = b, t
		}
	}
	return o.at[slot][oldest]
}

func (o *oracle) match(ns string, slot uint32, chain []uint64) uint32 {
	for i, h := range chain {
		if _, ok := o.held[slot][block{ns, h}]; !ok {
			return uint32(i)
		}
	}
	return uint32(len(chain))
}

func (o *oracle) drop(ns string) {
	for _, h := range o.held {
		for b := range h {
			if b.ns == ns {
				delete(h, b)
			}
		}
	}
}

func (o *oracle) remove(slot uint32) { clear(o.held[slot]) }

// chained makes a chain of block contents. In two of three cases all hashes start with the same byte, which is hard for
// a byte-wise radix tree.
func chained(contents []byte) []uint64 {
	out := make([]uint64, len(contents))
	h := uint64(14695981039346656037)
	for i, c := range contents {
		h = mix(h ^ uint64(c) + 1)
		out[i] = h
		if h%3 != 0 {
			out[i] = h>>8 | 0xab<<56
		}
	}
	return out
}

func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// contents returns the blocks of a random prompt: few letters and mostly copies of earlier prompts with another end, so
// that chains share prefixes, repeat, end inside each other and part at every point.
func contents(r *rand.Rand, earlier *[][]byte) []byte {
	var c []byte
	if len(*earlier) > 0 && r.IntN(8) > 0 {
		old := (*earlier)[r.IntN(len(*earlier))]
		c = append(c, old[:r.IntN(len(old)+1)]...)
		if r.IntN(3) == 0 {
			c = append(c[:0], old...)
		}
	}
	for n := r.IntN(6); n > 0 && len(c) < 60; n-- {
		c = append(c, byte(r.IntN(3)))
	}
	if len(*earlier) < 40 {
		*earlier = append(*earlier, c)
	} else {
		(*earlier)[r.IntN(40)] = c
	}
	return c
}
