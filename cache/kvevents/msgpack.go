package kvevents

import (
	"encoding/binary"
	"errors"
	"math"
)

// Errors of a payload that no vLLM sends. What was decoded before one has been handed on.
var (
	errShort = errors.New("kvevents: the payload ends in the middle of a value")
	errShape = errors.New("kvevents: the payload is no batch of events: [ts, [event, ...], rank]")
)

// First bytes of msgpack values, https://github.com/msgpack/msgpack/blob/master/spec.md. Below mpFixMap are the
// positive fixints, from mpNegative on the negative ones.
const (
	mpFixMap   = 0x80
	mpFixArray = 0x90
	mpFixStr   = 0xa0
	mpNil      = 0xc0
	mpNever    = 0xc1
	mpFalse    = 0xc2
	mpTrue     = 0xc3
	mpBin8     = 0xc4
	mpExt8     = 0xc7
	mpFloat32  = 0xca
	mpFloat64  = 0xcb
	mpUint8    = 0xcc
	mpUint16   = 0xcd
	mpUint32   = 0xce
	mpUint64   = 0xcf
	mpInt8     = 0xd0
	mpInt16    = 0xd1
	mpInt32    = 0xd2
	mpInt64    = 0xd3
	mpFixExt1  = 0xd4
	mpStr8     = 0xd9
	mpArray16  = 0xdc
	mpArray32  = 0xdd
	mpMap16    = 0xde
	mpMap32    = 0xdf
	mpNegative = 0xe0
)

// cursor reads msgpack values off a payload. After a failure bad is set, and every value is zero: a caller looks at bad
// once, after its loop.
type cursor struct {
	b   []byte
	at  int
	bad bool
}

// take returns the next n bytes.
func (c *cursor) take(n int) []byte {
	if n > len(c.b)-c.at {
		c.bad = true
	}
	if c.bad {
		return nil
	}
	c.at += n
	return c.b[c.at-n : c.at]
}

// peek returns the first byte of the next value, mpNever at the end.
func (c *cursor) peek() byte {
	if c.bad || c.at >= len(c.b) {
		c.bad = true
		return mpNever
	}
	return c.b[c.at]
}

// number returns the next n bytes as a big-endian number.
func (c *cursor) number(n int) uint64 {
	var v uint64
	for _, x := range c.take(n) {
		v = v<<8 | uint64(x)
	}
	return v
}

// sized returns the number that follows the first byte of a value in 1<<step bytes.
func (c *cursor) sized(step byte) uint64 {
	c.at++
	return c.number(1 << step)
}

// isNil takes the next value if it is nil.
func (c *cursor) isNil() bool {
	if c.peek() != mpNil {
		return false
	}
	c.at++
	return true
}

// array returns the number of elements of an array and enters it. Each has a byte at least, so a number that the
// payload cannot hold is a failure before anything is reserved for it.
func (c *cursor) array() (n int, ok bool) {
	var v uint64
	switch x := c.peek(); {
	case x&0xf0 == mpFixArray:
		c.at++
		v = uint64(x & 0x0f)
	case x == mpArray16 || x == mpArray32:
		v = c.sized(x - mpArray16 + 1)
	default:
		return 0, false
	}
	return c.fits(v, 1)
}

// entries is array for a map, whose entries have two bytes at least.
func (c *cursor) entries() (n int, ok bool) {
	var v uint64
	switch x := c.peek(); {
	case x&0xf0 == mpFixMap:
		c.at++
		v = uint64(x & 0x0f)
	case x == mpMap16 || x == mpMap32:
		v = c.sized(x - mpMap16 + 1)
	default:
		return 0, false
	}
	return c.fits(v, 2)
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
	x := c.peek()
	switch {
	case x&0xe0 == mpFixStr:
		c.at++
		return c.take(int(x & 0x1f)), !c.bad
	case x >= mpStr8 && x < mpArray16:
		return c.bytes(c.sized(x - mpStr8))
	case x >= mpBin8 && x < mpExt8:
		return c.bytes(c.sized(x - mpBin8))
	}
	return nil, false
}

func (c *cursor) bytes(n uint64) ([]byte, bool) {
	if n > uint64(len(c.b)) {
		c.bad = true
	}
	if c.bad {
		return nil, false
	}
	b := c.take(int(n))
	return b, !c.bad
}

// integer takes an integer of any width. A negative one is its two's complement.
func (c *cursor) integer() (v uint64, ok bool) {
	x := c.peek()
	switch {
	case c.bad:
		return 0, false
	case x < mpFixMap:
		c.at++
		return uint64(x), true
	case x >= mpNegative:
		c.at++
		return uint64(int64(int8(x))), true
	case x >= mpUint8 && x <= mpUint64:
		v = c.sized(x - mpUint8)
	case x >= mpInt8 && x <= mpInt64:
		v = c.sized(x - mpInt8)
		unused := 64 - 8<<(x-mpInt8)
		v = uint64(int64(v<<unused) >> unused)
	default:
		return 0, false
	}
	return v, !c.bad
}

// real takes a float or an integer.
func (c *cursor) real() (v float64, ok bool) {
	switch c.peek() {
	case mpFloat32:
		v = float64(math.Float32frombits(uint32(c.sized(2))))
	case mpFloat64:
		v = math.Float64frombits(c.sized(3))
	default:
		n, ok := c.integer()
		return float64(int64(n)), ok
	}
	return v, !c.bad
}

// hash takes a block's hash: an integer, or of a raw digest the last eight bytes.
func (c *cursor) hash() (h uint64, ok bool) {
	if x := c.peek(); x == mpUint64 && len(c.b)-c.at >= 9 { // what every release sends by default
		c.at += 9
		return binary.BigEndian.Uint64(c.b[c.at-8:]), true
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
		x := c.peek()
		switch {
		case x < mpFixMap || x >= mpNegative || x == mpNil || x == mpFalse || x == mpTrue:
			c.at++
		case x&0xf0 == mpFixMap || x == mpMap16 || x == mpMap32:
			n, _ := c.entries()
			left += 2 * uint64(n)
		case x&0xf0 == mpFixArray || x == mpArray16 || x == mpArray32:
			n, _ := c.array()
			left += uint64(n)
		default:
			c.skipPlain(x)
		}
	}
}

// skipPlain passes over a value that holds no others.
func (c *cursor) skipPlain(x byte) {
	switch {
	case x == mpFloat32:
		c.take(5)
	case x == mpFloat64:
		c.take(9)
	case x >= mpExt8 && x < mpFloat32:
		if n := c.sized(x - mpExt8); n < uint64(len(c.b)) {
			c.take(int(n) + 1) // and the byte of its type
		} else {
			c.bad = true
		}
	case x >= mpFixExt1 && x < mpStr8:
		c.take(2 + 1<<(x-mpFixExt1))
	default:
		if _, ok := c.text(); ok {
			return
		}
		if _, ok := c.integer(); !ok {
			c.bad = true
		}
	}
}
