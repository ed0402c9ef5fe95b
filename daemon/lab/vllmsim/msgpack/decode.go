package msgpack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrInput is what Decode returns for bytes that are no message of a kind that is read here.
var ErrInput = errors.New("msgpack: not a value that is read here")

// maxDepth is how deep lists and maps may stand in each other; LMCache's answers need 4.
const maxDepth = 16

// Decode reads one value: nil, bool, int64, uint64, float64, string, []byte, []any or map[string]any.
func Decode(b []byte) (any, error) {
	d := decoder{b: b}
	v := d.value(0)
	if d.bad || len(d.b) > 0 {
		return nil, fmt.Errorf("%w: %d bytes, wrong %d before the end", ErrInput, len(b), len(d.b))
	}
	return v, nil
}

type decoder struct {
	b   []byte
	bad bool
}

// take returns the next n bytes, or notes that there are fewer.
func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

// number reads n bytes, most significant first.
func (d *decoder) number(n uint64) (v uint64) {
	for _, c := range d.take(n) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (d *decoder) value(depth int) any {
	head := d.take(1)
	if depth > maxDepth {
		d.bad = true
	}
	if d.bad {
		return nil
	}
	switch c := head[0]; {
	case c < 0x80:
		return uint64(c)
	case c < 0x90:
		return d.pairs(uint64(c&15), depth)
	case c < 0xa0:
		return d.list(uint64(c&15), depth)
	case c < 0xc0:
		return string(d.take(uint64(c & 31)))
	case c >= 0xe0:
		return int64(int8(c))
	default:
		return d.sized(c, depth)
	}
}

// sized reads a value whose first byte names the form of its length or number.
func (d *decoder) sized(c byte, depth int) any {
	switch c {
	case 0xc0:
		return nil
	case 0xc2, 0xc3:
		return c == 0xc3
	case 0xc4, 0xc5, 0xc6:
		return append([]byte(nil), d.take(d.number(1<<(c-0xc4)))...)
	case 0xcb:
		return math.Float64frombits(d.number(8))
	case 0xcc, 0xcd, 0xce, 0xcf:
		return d.number(1 << (c - 0xcc))
	case 0xd0, 0xd1, 0xd2, 0xd3:
		var raw [8]byte
		wide := raw[8-1<<(c-0xd0):]
		copy(wide, d.take(uint64(len(wide))))
		shift := 64 - 8*len(wide)
		return int64(binary.BigEndian.Uint64(raw[:])<<shift) >> shift
	case 0xd9, 0xda, 0xdb:
		return string(d.take(d.number(1 << (c - 0xd9))))
	case 0xdc, 0xdd:
		return d.list(d.number(2<<(c-0xdc)), depth)
	case 0xde, 0xdf:
		return d.pairs(d.number(2<<(c-0xde)), depth)
	}
	d.bad = true
	return nil
}

func (d *decoder) list(n uint64, depth int) any {
	d.bad = d.bad || n > uint64(len(d.b)) // each value has a byte
	list := []any{}
	for ; n > 0 && !d.bad; n-- {
		list = append(list, d.value(depth+1))
	}
	return list
}

func (d *decoder) pairs(n uint64, depth int) any {
	d.bad = d.bad || n > uint64(len(d.b))
	m := map[string]any{}
	for ; n > 0 && !d.bad; n-- {
		key, ok := d.value(depth + 1).(string)
		d.bad = d.bad || !ok
		m[key] = d.value(depth + 1)
	}
	return m
}
