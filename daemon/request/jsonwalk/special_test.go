package jsonwalk

import (
	"bytes"
	"testing"
)

// Every byte value at every place, after any other byte: the word-at-a-time search against the plain one.
func TestSpecial(t *testing.T) {
	plain := func(b []byte, i int) int {
		for ; i < len(b); i++ {
			if b[i] == '"' || b[i] == '\\' || b[i] < ' ' {
				return i
			}
		}
		return len(b)
	}
	for _, fill := range []byte{'a', ' ', '!', '#', 0x7f, 0x80, 0xff, ']', '['} {
		b := bytes.Repeat([]byte{fill}, 75)
		for at := range b {
			for c := range 256 {
				b[at] = byte(c)
				for _, from := range []int{0, 1, 7, at} {
					if got, want := Special(b, from), plain(b, from); got != want {
						t.Fatalf("byte %#x at %d among %#x, from %d: found at %d, want %d", c, at, fill, from, got, want)
					}
				}
			}
			b[at] = fill
		}
	}
}
