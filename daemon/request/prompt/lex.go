package prompt

import (
	"math"
	"strconv"

	"github.com/warmpath/warmpath/daemon/request/jsonwalk"
)

// skipString returns the end of the string whose inside begins at i, and whether it has escapes. ok is false if it is
// none: then end is the place of the fault.
func skipString(b []byte, i int) (end int, escapes, ok bool) {
	for {
		i = jsonwalk.Special(b, i)
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

// is reports whether the byte at i is c.
func is(b []byte, i int, c byte) bool { return i < len(b) && b[i] == c }

// skipDigits returns the end of a run of digits, and whether there is one.
func skipDigits(b []byte, i int) (end int, ok bool) {
	lo := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i, i > lo
}

// parseNumber returns a number; 0 for other values. Python's 16.0 counts as 16.
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
