package holdings

import "math/bits"

// bitmap is a set of small numbers. It is as long as its highest member asked for, and nil when it was always empty.
type bitmap []uint64

func (b bitmap) word(i int) uint64 {
	if i < len(b) {
		return b[i]
	}
	return 0
}

func (b bitmap) has(i int) bool { return b.word(i>>6)>>(i&63)&1 != 0 }

// fill adds from..to-1 and returns how many of them are new.
func (b *bitmap) fill(from, to int) (added int) {
	if need := (to + 63) >> 6; need > len(*b) {
		*b = append(*b, make(bitmap, need-len(*b))...)
	}
	for from < to {
		i := from >> 6
		n := min(64-from&63, to-from)
		mask := ^uint64(0) >> (64 - n) << (from & 63)
		added += bits.OnesCount64(mask &^ (*b)[i])
		(*b)[i] |= mask
		from += n
	}
	return added
}

// take removes a number that is in it.
func (b bitmap) take(i int) { b[i>>6] &^= 1 << (i & 63) }

// end is one more than the highest number below limit, 0 if there is none.
func (b bitmap) end(limit int) int {
	for i := min(len(b)-1, (limit-1)>>6); i >= 0; i-- {
		w := b[i]
		if above := limit - i<<6; above < 64 {
			w &= 1<<above - 1
		}
		if w != 0 {
			return i<<6 + bits.Len64(w)
		}
	}
	return 0
}

// next returns the lowest number in it from i on and below limit; limit if there is none.
func (b bitmap) next(i, limit int) int {
	for i < limit && i>>6 < len(b) {
		if w := b[i>>6] >> (i & 63); w != 0 {
			return min(limit, i+bits.TrailingZeros64(w))
		}
		i = (i>>6 + 1) << 6
	}
	return limit
}

// gap returns the first number from i on that is in none of the three sets.
func gap(i int, a, b, c bitmap) int {
	for {
		w := ^(a.word(i>>6) | b.word(i>>6) | c.word(i>>6)) >> (i & 63)
		if w != 0 {
			return i + bits.TrailingZeros64(w)
		}
		i = (i>>6 + 1) << 6
	}
}
