package jsonwalk

import (
	"encoding/binary"
	"math/bits"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// marked sets the high bit of the first byte of x that is a quote, a backslash or a control character. Bytes after it
// may be marked wrongly (a borrow runs upwards), so only the lowest mark counts. With its second bit turned the quote
// (22) lies right above the control characters (00 to 1F), which stay among themselves: one comparison finds both.
func marked(x uint64) uint64 {
	low, slash := (x^2*ones)-0x21*ones, (x^'\\'*ones)-ones
	return (low | slash) &^ x & highs
}

// Special finds the next byte that matters inside a string: quote, backslash or control character; len(b) if none.
// Eight bytes at a time: bytes.IndexByte would need three passes.
func Special(b []byte, i int) int {
	for ; i+32 <= len(b); i += 32 {
		c := b[i : i+32 : i+32]
		m0, m1 := marked(binary.LittleEndian.Uint64(c)), marked(binary.LittleEndian.Uint64(c[8:]))
		m2, m3 := marked(binary.LittleEndian.Uint64(c[16:])), marked(binary.LittleEndian.Uint64(c[24:]))
		switch {
		case m0|m1|m2|m3 == 0:
		case m0 != 0:
			return i + bits.TrailingZeros64(m0)/8
		case m1 != 0:
			return i + 8 + bits.TrailingZeros64(m1)/8
		case m2 != 0:
			return i + 16 + bits.TrailingZeros64(m2)/8
		default:
			return i + 24 + bits.TrailingZeros64(m3)/8
		}
	}
	for ; i+8 <= len(b); i += 8 {
		if m := marked(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return len(b)
}
