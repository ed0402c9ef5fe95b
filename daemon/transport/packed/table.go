package packed

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

// maxWords is the most words that a row, or the head, has: a mask has so many bits.
const maxWords = 64

var zeros [maxWords]uint64

// AppendTable appends a head, then rows, each as what differs from the row before. Both have whole words, 64 at most;
// bytes behind the last whole row are left out.
func AppendTable(out, table []byte, head, row int) []byte {
	if len(table) < head {
		return out
	}
	out = appendWords(out, words(table[:head]), zeros[:])
	before := zeros[:]
	for rest := table[head:]; len(rest) >= row; rest = rest[row:] {
		next := words(rest[:row])
		out = appendWords(out, next, before)
		before = next
	}
	return out
}

// words returns bytes as the words that they are.
func words(b []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// appendWords appends a mask of the words that differ from those of like, in as many bytes as it has bits for, and what
// they differ by.
func appendWords(out []byte, v, like []uint64) []byte {
	at := len(out)
	head := (len(v) + 7) / 8
	out = slices.Grow(out, head+8*len(v))[:at+head]
	mask := uint64(0)
	for i, w := range v {
		if w != like[i] {
			mask |= 1 << i
			out = binary.NativeEndian.AppendUint64(out, w^like[i])
		}
	}
	for i := range head {
		out[at+i] = byte(mask >> (8 * i))
	}
	return out
}

// ReadTable reads what AppendTable has written. It reports false for other bytes.
func ReadTable(text []byte, head, row int) (table []byte, ok bool) {
	before := make([]uint64, max(head, row)/8)
	table, text, ok = appendRead(table, text, before[:head/8])
	clear(before)
	for ok && len(text) > 0 {
		table, text, ok = appendRead(table, text, before[:row/8])
	}
	return table, ok
}

// appendRead appends the row that text begins with to table. before is the row before, and becomes this one.
func appendRead(table, text []byte, before []uint64) (longer, rest []byte, ok bool) {
	head := (len(before) + 7) / 8
	if len(text) < head {
		return table, nil, false
	}
	mask, text := text[:head], text[head:]
	for i := range before {
		if mask[i/8]>>(i%8)&1 == 1 {
			if len(text) < 8 {
				return table, nil, false
			}
			before[i] ^= binary.NativeEndian.Uint64(text)
			text = text[8:]
		}
		table = binary.NativeEndian.AppendUint64(table, before[i])
	}
	return table, text, true
}
