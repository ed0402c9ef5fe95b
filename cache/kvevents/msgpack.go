package kvevents

import (
	"encoding/binary"
	"errors"

	"github.com/tinylib/msgp/msgp"
)

// Errors of a payload that no vLLM sends. What was decoded before one has been handed on.
var (
	errShort = errors.New("kvevents: the payload ends in the middle of a value")
	errShape = errors.New("kvevents: the payload is no batch of events: [ts, [event, ...], rank]")
)

// cursor reads msgpack values off a payload. After a failure bad is set, and every value is zero: a caller looks at bad
// once, after its loop.
type cursor struct {
	b   []byte
	at  int
	bad bool
}

// rest returns what comes next, nothing after a failure.
func (c *cursor) rest() []byte {
	if c.bad {
		return nil
	}
	return c.b[c.at:]
}

// next returns the type of the next value. The end is a failure.
func (c *cursor) next() msgp.Type {
	rest := c.rest()
	c.bad = len(rest) == 0
	return msgp.NextType(rest)
}

// goOn goes on behind a value that the library has read.
func (c *cursor) goOn(rest []byte, err error) {
	if err != nil {
		c.bad = true
		return
	}
	c.at = len(c.b) - len(rest)
}

// isNil takes the next value if it is nil.
func (c *cursor) isNil() bool {
	if c.next() != msgp.NilType {
		return false
	}
	c.at++
	return true
}

// array returns the number of elements of an array and enters it. Each has a byte at least, so a number that the
// payload cannot hold is a failure before anything is reserved for it.
func (c *cursor) array() (n int, ok bool) {
	if c.next() != msgp.ArrayType {
		return 0, false
	}
	v, rest, err := msgp.ReadArrayHeaderBytes(c.rest())
	c.goOn(rest, err)
	return c.fits(uint64(v), 1)
}

// entries is array for a map, whose entries have two bytes at least.
func (c *cursor) entries() (n int, ok bool) {
	if c.next() != msgp.MapType {
		return 0, false
	}
	v, rest, err := msgp.ReadMapHeaderBytes(c.rest())
	c.goOn(rest, err)
	return c.fits(uint64(v), 2)
}

func (c *cursor) fits(n, bytes uint64) (int, bool) {
	if c.bad || n*bytes > uint64(len(c.b)-c.at) {
		c.bad = true
		return 0, false
	}
	return int(n), true
}

// text takes a str or bin.
func (c *cursor) text() (s []byte, ok bool) {
	var rest []byte
	var err error
	switch c.next() {
	case msgp.StrType:
		s, rest, err = msgp.ReadStringZC(c.rest())
	case msgp.BinType:
		s, rest, err = msgp.ReadBytesZC(c.rest())
	default:
		return nil, false
	}
	c.goOn(rest, err)
	return s, !c.bad
}

// integer takes an integer of any width. A negative one is its two's complement.
func (c *cursor) integer() (v uint64, ok bool) {
	var rest []byte
	var err error
	switch c.next() {
	case msgp.IntType:
		var n int64
		n, rest, err = msgp.ReadInt64Bytes(c.rest())
		v = uint64(n)
	case msgp.UintType:
		v, rest, err = msgp.ReadUint64Bytes(c.rest())
	default:
		return 0, false
	}
	c.goOn(rest, err)
	return v, !c.bad
}

// real takes a float or an integer.
func (c *cursor) real() (v float64, ok bool) {
	switch c.next() {
	case msgp.Float32Type, msgp.Float64Type:
		v, rest, err := msgp.ReadFloat64Bytes(c.rest())
		c.goOn(rest, err)
		return v, !c.bad
	}
	n, ok := c.integer()
	return float64(int64(n)), ok
}

// hash takes a block's hash: an integer, or of a raw digest the last eight bytes.
func (c *cursor) hash() (h uint64, ok bool) {
	if rest := c.rest(); len(rest) >= 9 && rest[0] == mpUint64 { // what every release sends by default
		c.at += 9
		return binary.BigEndian.Uint64(rest[1:]), true
	}
	from := c.at
	if b, ok := c.text(); ok {
		if len(b) < 8 {
			c.at = from
			return 0, false
		}
		return binary.BigEndian.Uint64(b[len(b)-8:]), true
	}
	return c.integer()
}

// skip passes over a value of any kind, however deep, with no recursion: left counts the values still to pass over, and
// each has a byte at least.
func (c *cursor) skip() {
	for left := uint64(1); left > 0 && !c.bad; left-- {
		if n, ok := c.array(); ok {
			left += uint64(n)
		} else if n, ok := c.entries(); ok {
			left += 2 * uint64(n)
		} else if !c.bad {
			c.goOn(msgp.Skip(c.rest()))
		}
	}
}
