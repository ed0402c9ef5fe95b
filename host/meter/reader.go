package meter

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errShort = errors.New("the module ends too early; copy it whole, or build it again")

// reader takes LEB128 numbers and byte runs from b. The first error sticks; after it every read gives zero.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.at = len(r.b)
}

func (r *reader) more() bool { return r.err == nil && r.at < len(r.b) }

func (r *reader) byte() byte {
	if r.at >= len(r.b) {
		r.fail(errShort)
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

func (r *reader) u32() uint32 {
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 || n > 5 || v > 1<<32-1 {
		r.fail(errors.New("a number is malformed"))
		return 0
	}
	r.at += n
	return uint32(v)
}

// leb passes a number of up to max bytes whose value does not matter.
func (r *reader) leb(max int) {
	for range max {
		if r.byte()&0x80 == 0 {
			return
		}
	}
	r.fail(errors.New("a number is malformed"))
}

func (r *reader) take(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)-r.at) {
		r.fail(errShort)
		return nil
	}
	b := r.b[r.at : r.at+int(n)]
	r.at += int(n)
	return b
}

// count reads the length of a vector whose elements take at least one byte each.
func (r *reader) count() int {
	n := r.u32()
	if uint64(n) > uint64(len(r.b)-r.at) {
		r.fail(errShort)
		return 0
	}
	return int(n)
}

// done returns an error unless a section was read to its end without one.
func (r *reader) done(what string) error {
	if r.err == nil && r.at != len(r.b) {
		r.fail(fmt.Errorf("%d bytes are left over", len(r.b)-r.at))
	}
	if r.err != nil {
		return fmt.Errorf("meter: %s section: %w", what, r.err)
	}
	return nil
}

func appendBytes(b, s []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }

func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
