package prompt

import (
	"bytes"
	"fmt"
	"math"
)

// maxDepth bounds nesting. Python's own parser, which reads the body on the worker, gives up at about 1,000; real
// bodies stay under 30.
const maxDepth = 512

// SyntaxError is the place where a body stops being JSON. The request goes on all the same: the worker's 400 is the
// honest one.
type SyntaxError struct {
	Offset int // of the first byte that does not fit
}

// Error names the place, and nothing of the body.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("prompt: body is not JSON at byte %d; the worker's own answer names the fault", e.Offset)
}

// span is a raw JSON value in the body: body[lo:hi], quotes included. hi is 0 when there is none. A chat holds five a
// message as long as its request is routed, so the places have 32 bits.
type span struct{ lo, hi uint32 }

// maxSpan is the longest body in which values have a place.
const maxSpan = math.MaxUint32

func (v span) of(b []byte) []byte { return b[v.lo:v.hi] }

// scanner walks JSON in one pass. Its methods return false at the first fault, with i near it.
type scanner struct {
	b     []byte
	i     int
	depth int
	key   []byte // an unescaped key, valid until the next one
	esc   bool   // the string read last has escapes
	loose bool   // see numbers
}

func (s *scanner) reset(b []byte) {
	s.b = b
	s.i = 0
	s.depth = 0
	s.loose = false
}

// document scans one whole JSON text, whose top level is an object in all that interests us: its values are left to
// field.
func (s *scanner) document(field func(key []byte) bool) bool {
	s.skipMark()
	if !s.object(field) {
		return false
	}
	s.space()
	return s.i == len(s.b)
}

// skipMark passes over a byte order mark, which Python accepts, and white space.
func (s *scanner) skipMark() {
	if len(s.b) >= 3 && s.b[0] == 0xEF && s.b[1] == 0xBB && s.b[2] == 0xBF {
		s.i = 3
	}
	s.space()
}

// object scans an object; field must scan the value, a nil field skips it. Anything but an object is skipped.
func (s *scanner) object(field func(key []byte) bool) bool {
	if s.at() != '{' {
		return s.value()
	}
	if !s.open('}') {
		return s.close()
	}
	for {
		s.space()
		lo := s.i + 1
		if s.at() != '"' || !s.str() {
			return false
		}
		key := s.b[lo : s.i-1]
		if s.esc {
			s.key = unescape(s.key[:0], key)
			key = s.key
		}
		s.space()
		if s.at() != ':' {
			return false
		}
		s.i++
		s.space()
		if field == nil {
			if !s.value() {
				return false
			}
		} else if !field(key) {
			return false
		}
		if more, ok := s.next('}'); !more {
			return ok && s.close()
		}
	}
}

// array scans an array; elem must scan the element, a nil elem skips it. Anything but an array is skipped.
func (s *scanner) array(elem func() bool) bool {
	if s.at() != '[' {
		return s.value()
	}
	if !s.open(']') {
		return s.close()
	}
	for {
		s.space()
		if elem == nil {
			s.ints(nil)
			if s.space(); !s.value() {
				return false
			}
		} else if !elem() {
			return false
		}
		if more, ok := s.next(']'); !more {
			return ok && s.close()
		}
	}
}

// ints passes over a run of small integers with their commas, as token ids come by the thousand, and appends them to
// c unless it is nil. It stops before the last element of the run, which is left to the general way.
func (s *scanner) ints(c *Chain) {
	b, i := s.b, s.i
	for {
		j, id := i, uint32(0)
		for j < len(b) && b[j]-'0' <= 9 {
			id = id*10 + uint32(b[j]-'0')
			j++
		}
		if n := j - i; n == 0 || n > 9 || n > 1 && b[i] == '0' || j == len(b) || b[j] != ',' {
			break
		}
		if c != nil {
			c.token(id)
		}
		i = j + 1
		if i < len(b) && b[i] == ' ' {
			i++
		}
	}
	s.i = i
}

// numbers passes over a list that begins with a number, and assumes that all the rest of it are numbers too.
func (s *scanner) numbers() bool {
	lo := s.i + 1
	if lo == len(s.b) || s.b[lo] != '-' && s.b[lo]-'0' > 9 {
		return false
	}
	n := bytes.IndexByte(s.b[lo:], ']')
	if n >= 0 {
		s.i = lo + n + 1
	}
	return n >= 0
}

// open steps into an object or array. It returns false if that is empty or too deep; close returns which.
func (s *scanner) open(end byte) bool {
	s.depth++
	if s.depth > maxDepth {
		return false
	}
	s.i++
	s.space()
	if s.at() == end {
		s.i++
		return false
	}
	return true
}

// close leaves an object or array; false if it was too deep to enter.
func (s *scanner) close() bool {
	s.depth--
	return s.depth < maxDepth
}

// next steps over the comma or the end.
func (s *scanner) next(end byte) (more, ok bool) {
	s.space()
	switch s.at() {
	case ',':
		s.i++
		return true, true
	case end:
		s.i++
		return false, true
	}
	return false, false
}

// value skips one value of any type.
func (s *scanner) value() bool {
	switch c := s.at(); {
	case c == '"':
		return s.str()
	case c == '{':
		return s.object(nil)
	case c == '[':
		return s.loose && s.numbers() || s.array(nil)
	case c == '-' || c-'0' <= 9:
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	case c == 'N':
		return s.word("NaN") // Python writes and reads it
	case c == 'I':
		return s.word("Infinity")
	}
	return false
}

// locate skips one value and records its place.
func (s *scanner) locate(into *span) bool {
	lo := s.i
	if !s.value() {
		return false
	}
	*into = span{uint32(lo), uint32(s.i)}
	return true
}

// integer reads a number as one that is not negative.
func (s *scanner) integer(into *int) bool {
	var v span
	ok := s.locate(&v)
	*into = int(min(max(parseNumber(v.of(s.b)), 0), 1<<40))
	return ok
}

// at returns the byte here, 0 at the end (0 never begins anything in JSON).
func (s *scanner) at() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) space() {
	if s.i < len(s.b) && s.b[s.i] <= ' ' {
		s.spaces()
	}
}

func (s *scanner) spaces() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\r' || s.b[s.i] == '\t') {
		s.i++
	}
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

// str skips a string, checking its escapes.
func (s *scanner) str() bool {
	ok := false
	s.i, s.esc, ok = skipString(s.b, s.i+1)
	return ok
}

func (s *scanner) number() bool {
	ok := false
	s.i, ok = skipNumber(s.b, s.i)
	return ok
}
