package lmcache

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// maxName is the longest identifier or address, in bytes.
const maxName = 256

var errShape = errors.New("not a map with named fields")

// skip passes over a value of any shape. However deep it is nested, that costs no stack.
func skip(b []byte) ([]byte, error) {
	for left := uint64(1); left > 0; left-- {
		var n uint32
		var err error
		switch msgp.NextType(b) {
		case msgp.ArrayType:
			n, b, err = msgp.ReadArrayHeaderBytes(b)
			left += uint64(n)
		case msgp.MapType:
			n, b, err = msgp.ReadMapHeaderBytes(b)
			left += 2 * uint64(n)
		default:
			b, err = msgp.Skip(b)
		}
		if err != nil {
			return nil, errShape
		}
	}
	return b, nil
}

func readName(b []byte) (s, rest []byte, err error) {
	s, rest, err = msgp.ReadStringZC(b)
	if err == nil && len(s) > maxName {
		err = fmt.Errorf("a name of %d bytes; at most %d", len(s), maxName)
	}
	return s, rest, err
}

// readInto reads a string or nil. What is as before is not allocated again.
func readInto(s *string, b []byte) (rest []byte, err error) {
	if msgp.IsNil(b) {
		*s = ""
		return msgp.ReadNilBytes(b)
	}
	text, rest, err := readName(b)
	if err == nil && string(text) != *s {
		*s = string(text)
	}
	return rest, err
}

// readCount reads a number from 0 to 2^31-1.
func readCount(b []byte) (int, []byte, error) {
	n, rest, err := msgp.ReadInt64Bytes(b)
	if err == nil && (n < 0 || n > 1<<31-1) {
		err = fmt.Errorf("%d; want 0 to %d", n, 1<<31-1)
	}
	return int(n), rest, err
}

// readKey reads the hash of a chunk: an int of up to 64 bits with or without a sign, or a digest, of which the first
// eight bytes count.
func readKey(b []byte) (uint64, []byte, error) {
	switch msgp.NextType(b) {
	case msgp.BinType:
		digest, rest, err := msgp.ReadBytesZC(b)
		if err != nil {
			return 0, nil, err
		}
		k, err := foldDigest(digest)
		return k, rest, err
	case msgp.UintType:
		return msgp.ReadUint64Bytes(b)
	}
	n, rest, err := msgp.ReadInt64Bytes(b)
	return uint64(n), rest, err
}

func foldDigest(digest []byte) (uint64, error) {
	if len(digest) < 8 || len(digest) > 64 {
		return 0, fmt.Errorf("a chunk hash of %d bytes; want 8 to 64", len(digest))
	}
	return binary.BigEndian.Uint64(digest), nil
}
