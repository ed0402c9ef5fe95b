package lmcache

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// What vLLM's sha256 and sha256_cbor hash: the pickle and the CBOR of a chunk (vllm/utils/hashing.py).

// Tail is the third item of the tuple that LMCache hashes, where vLLM has its extra keys.
type Tail uint8

// The tails. NoTail is None: LMCache up to 0.3.15, and its multi-process server. EmptyTail is (): from 0.4.1 on.
const (
	NoTail Tail = iota
	EmptyTail
)

// link is what one chunk hands on to the next: an int of Python's, or a digest.
type link struct {
	number   uint64 // two's complement
	unsigned bool   // number is not negative, whatever its highest bit is
	digest   bool
	size     int // of bytes
	bytes    [32]byte
}

// key returns l as a key: ints as they are, of a digest the first eight bytes as a big-endian number.
func (l *link) key() uint64 {
	if l.digest {
		return binary.BigEndian.Uint64(l.bytes[:8])
	}
	return l.number
}

// sum returns l as a server writes it: the digest, or the int in eight bytes.
func (l *link) sum() []byte {
	if l.digest {
		return slices.Clone(l.bytes[:l.size])
	}
	return binary.BigEndian.AppendUint64(nil, l.number)
}

// appendPickle appends what pickle.dumps(v, protocol=5) gives for the tuple (prefix, (tokens...), tail) or, with no
// tokens and a text, for that str. Tuples, strings and bytes are memoized, which costs them one opcode (Lib/pickle.py).
// The C pickler splits frames above 64 KiB; maxPickled keeps a chunk below.
func appendPickle(b []byte, prefix link, tokens []uint32, tail Tail) []byte {
	b, frame := beginPickle(b)
	if prefix.digest {
		b = append(b, 'C', byte(prefix.size))
		b = append(b, prefix.bytes[:prefix.size]...)
		b = append(b, 0x94)
	} else {
		b = appendPickledInt(b, prefix.number, prefix.unsigned)
	}
	if len(tokens) > 3 {
		b = append(b, '(')
	}
	for _, t := range tokens {
		b = appendPickledInt(b, uint64(t), true)
	}
	if len(tokens) > 3 {
		b = append(b, 't', 0x94)
	} else {
		b = append(b, 0x84+byte(len(tokens)), 0x94)
	}
	if tail == NoTail {
		b = append(b, 'N')
	} else {
		b = append(b, ')')
	}
	return endPickle(append(b, 0x87, 0x94), frame)
}

// maxPickled is the most tokens in a pickled chunk: (65536 - 100) / 5 bytes a token.
const maxPickled = 13_000

func appendPickledString(b []byte, s string) []byte {
	b, frame := beginPickle(b)
	b = append(b, 0x8c, byte(len(s)))
	b = append(b, s...)
	return endPickle(append(b, 0x94), frame)
}

func beginPickle(b []byte) ([]byte, int) {
	b = append(b, 0x80, 5, 0x95, 0, 0, 0, 0, 0, 0, 0, 0)
	return b, len(b)
}

func endPickle(b []byte, frame int) []byte {
	b = append(b, '.')
	binary.LittleEndian.PutUint64(b[frame-8:], uint64(len(b)-frame))
	return b
}

// appendPickledInt appends an int: in one, two or four bytes, or as few as hold it with its sign.
func appendPickledInt(b []byte, v uint64, unsigned bool) []byte {
	switch n := int64(v); {
	case v < 1<<8:
		return append(b, 'K', byte(v))
	case v < 1<<16:
		return append(b, 'M', byte(v), byte(v>>8))
	case v < 1<<31, !unsigned && n < 0 && n >= -1<<31:
		return binary.LittleEndian.AppendUint32(append(b, 'J'), uint32(v))
	case unsigned || n > 0:
		size := bits.Len64(v)/8 + 1
		b = append(b, 0x8a, byte(size))
		for i := range size {
			b = append(b, byte(v>>(8*i))) // a shift by 64 gives the zero of the sign
		}
		return b
	default:
		size := 8
		for size > 1 && n>>(8*(size-1)-1) == -1 {
			size--
		}
		b = append(b, 0x8a, byte(size))
		for i := range size {
			b = append(b, byte(v>>(8*i)))
		}
		return b
	}
}

// appendCBOR appends the canonical CBOR of [prefix, tokens, tail] (RFC 8949).
func appendCBOR(b []byte, prefix link, tokens []uint32, tail Tail) []byte {
	b = append(b, 0x83)
	switch {
	case prefix.digest:
		b = appendCBORHead(b, 2, uint64(prefix.size))
		b = append(b, prefix.bytes[:prefix.size]...)
	case !prefix.unsigned && int64(prefix.number) < 0:
		b = appendCBORHead(b, 1, ^prefix.number)
	default:
		b = appendCBORHead(b, 0, prefix.number)
	}
	b = appendCBORHead(b, 4, uint64(len(tokens)))
	for _, t := range tokens {
		b = appendCBORHead(b, 0, uint64(t))
	}
	if tail == NoTail {
		return append(b, 0xf6)
	}
	return append(b, 0x80)
}

// appendCBORHead appends a major type and its number in as few bytes as hold it.
func appendCBORHead(b []byte, major byte, n uint64) []byte {
	major <<= 5
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, major|27), n)
}

func appendCBORString(b []byte, s string) []byte {
	return append(appendCBORHead(b, 3, uint64(len(s))), s...)
}
