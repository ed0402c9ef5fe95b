package listen

import (
	"strings"
	"testing"
)

func TestHeadEnds(t *testing.T) {
	const whole, bare, open = "over", "bare", "open"
	f := func(text, want string) {
		t.Helper()
		for size := 1; size <= len(text); size++ { // in pieces of every size
			var h head
			for rest := text; rest != "" && !h.over && !h.bare; {
				n := min(size, len(rest))
				h.note([]byte(rest[:n]))
				rest = rest[n:]
			}
			got := open
			switch {
			case h.bare:
				got = bare
			case h.over:
				got = whole
			}
			if got != want {
				t.Errorf("%q in pieces of %d: %s; want %s", text, size, got, want)
			}
		}
	}
	f("GET / HTTP/1.1\r\nHost: x\r\n\r\n", whole)
	f("GET / HTTP/1.1\nHost: x\r\n\r\n", whole)
	f("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", whole)
	f("\n\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", whole)
	f("GET / HTTP/1.0\r\n\r\n", whole)
	f("GET / HTTP/1.1\r\nHost: x\r\n\r\n\n\n", whole)
	f("GET / HTTP/1.1\nHost: x\n\n", bare)
	f("GET / HTTP/1.1\r\nHost: x\n\n", bare)
	f("GET / HTTP/1.1\r\nHost: x\r\n\n", bare)
	f("GET / HTTP/1.1\r\nHost: x\n\r\n", bare)
	f("GET / HTTP/1.1\n\n", bare)
	f("POST / HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}", bare)
	f("\n\n", open)
	f("\r\n\r\n", open)
	f("", open)
	f("GET / HTTP/1.1\r\nHost: x\r\n", open)
	f("GET / HTTP/1.1\r\nHost: x\r\n\r", open)
	f("GET / HTTP/1.1\r\nX: \r\r\nY: 1\r\n", open)
}

// FuzzHead: what is bare is no head that ends in CR LF CR LF before its first blank line, and pieces make no difference.
func FuzzHead(f *testing.F) {
	f.Add("GET / HTTP/1.1\r\nHost: x\n\n", 3)
	f.Add("GET / HTTP/1.1\r\nHost: x\r\n\r\nbody\n\n", 1000)
	f.Fuzz(func(t *testing.T, text string, size int) {
		if size < 1 {
			return
		}
		var h head
		for rest := text; rest != "" && !h.over && !h.bare; {
			n := min(size, len(rest))
			h.note([]byte(rest[:n]))
			rest = rest[n:]
		}
		begun := strings.TrimLeft(text, "\r\n")
		if begun == "" {
			return
		}
		end := strings.Index(begun, "\r\n\r\n")
		blank := min(index(begun, "\n\n"), index(begun, "\n\r\n"))
		if h.bare && end >= 0 && end < blank {
			t.Errorf("%q in pieces of %d is said to be bare", text, size)
		}
		if !h.bare && !h.over && blank < len(begun) {
			t.Errorf("%q in pieces of %d has a blank line, and is waited for", text, size)
		}
	})
}

func index(s, of string) int {
	if i := strings.Index(s, of); i >= 0 {
		return i
	}
	return len(s)
}
