package packed

import (
	"encoding/binary"
	"unsafe"
)

// AppendTable appends a table as Words: a head, then rows, each as what differs from the row before. Both have whole
// words, 32 at most; bytes behind the last whole row are left out.
func AppendTable(out, table []byte, head, row int) []byte {
	if len(table) < head {
		return out
	}
	c := Coder{Out: out}
	c.Words(words(table[:head]), nil)
	var before []uint64
	for rest := table[head:]; len(rest) >= row; rest = rest[row:] {
		next := words(rest[:row])
		c.Words(next, before)
		before = next
	}
	return c.Out
}

// words returns bytes as the words that they are.
func words(b []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// ReadTable reads what AppendTable has written. It reports false for other bytes.
func ReadTable(text []byte, head, row int) (table []byte, ok bool) {
	c := Read(string(text))
	var memory [2][wordsAtOnce]uint64
	next, before := memory[0][:head/8], []uint64(nil)
	c.Words(next, nil)
	table = store(table, next)
	for i := 0; c.in != "" && !c.Bad; i = 1 - i {
		next = memory[i][:row/8]
		c.Words(next, before)
		table = store(table, next)
		before = next
	}
	return table, !c.Bad
}

func store(to []byte, words []uint64) []byte {
	for _, w := range words {
		to = binary.NativeEndian.AppendUint64(to, w)
	}
	return to
}
