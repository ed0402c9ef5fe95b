package prompt

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

// skipString returns the end of the string whose inside begins at i, and whether it has escapes. ok is false if it is
// none: then end is the place of the fault.
func skipString(b []byte, i int) (end int, escapes, ok bool) {
	for {
		i = special(b, i)
		if i >= len(b) || b[i] < ' ' {
			return i, escapes, false
		}
		if b[i] == '"' {
			return i + 1, escapes, true
		}
		escapes = true
		for i < len(b) && b[i] == '\\' { // escapes come in runs: \uXXXX\uXXXX
			if i+1 < len(b) && escapeValue[b[i+1]] != 0 {
				i += 2
				continue
			}
			n := escapeLen(b[i:])
			if n == 0 {
				return i, true, false
			}
			i += n
		}
	}
}

// skipNumber returns the end of the number that begins at i. ok is false if it is none: then end is the place of the
// fault.
func skipNumber(b []byte, i int) (end int, ok bool) {
	if is(b, i, '-') {
		i++
		if is(b, i, 'I') {
			const infinity = "Infinity" // Python writes and reads it
			if len(b)-i < len(infinity) || string(b[i:i+len(infinity)]) != infinity {
				return i, false
			}
			return i + len(infinity), true
		}
	}
	if is(b, i, '0') {
		i++
	} else {
		i, ok = skipDigits(b, i)
		if !ok {
			return i, false
		}
	}
	if is(b, i, '.') {
		i, ok = skipDigits(b, i+1)
		if !ok {
			return i, false
		}
	}
	if is(b, i, 'e') || is(b, i, 'E') {
		i++
		if is(b, i, '+') || is(b, i, '-') {
			i++
		}
		return skipDigits(b, i)
	}
	return i, true
}

// is reports whether c stands at i.
func is(b []byte, i int, c byte) bool { return i < len(b) && b[i] == c }

// skipDigits returns the end of a run of digits, and whether there is one.
func skipDigits(b []byte, i int) (end int, ok bool) {
	lo := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i, i > lo
}

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

// special finds the next byte that matters inside a string: quote, backslash or control character; len(b) if none.
// Eight bytes at a time: bytes.IndexByte would need three passes.
func special(b []byte, i int) int {
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

// parseNumber returns a number, 0 for anything else. Python's 16.0 counts as 16.
func parseNumber(raw []byte) float64 {
	if len(raw) == 0 || raw[0] != '-' && raw[0]-'0' > 9 {
		return 0
	}
	if len(raw) <= 9 { // the usual case, without strconv's string
		n := 0
		i := 0
		for ; i < len(raw) && raw[i]-'0' <= 9; i++ {
			n = n*10 + int(raw[i]-'0')
		}
		if i == len(raw) {
			return float64(n)
		}
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if math.IsNaN(f) || err != nil && !math.IsInf(f, 0) {
		return 0
	}
	return f
}
