package upstream

import (
	"bytes"
	"io"
	"net/http/httputil"
	"strings"
	"testing"
)

// A body comes out the same however its framing is cut into reads, and whatever room there is.
func TestChunksInAnyPieces(t *testing.T) {
	const src = "5\r\nhello\r\n1;x=y\r\n,\r\n00A \t\r\n 0123\r\n\r\n9\r\n0\r\nTrailer: a\r\nB: c\r\n\r\n"
	const want = "hello, 0123\r\n\r\n9"
	for piece := 1; piece <= len(src); piece++ {
		for room := 1; room <= len(src); room++ {
			var c chunks
			var out []byte
			for left := []byte(src); len(left) > 0; {
				dst := make([]byte, room)
				nd, ns, err := c.decode(dst, left[:min(piece, len(left))])
				if err != nil {
					t.Fatalf("pieces of %d into %d: %v", piece, room, err)
				}
				out, left = append(out, dst[:nd]...), left[ns:]
			}
			if string(out) != want || c.at != atEnd {
				t.Fatalf("pieces of %d into %d: got %q, end %v; want %q", piece, room, out, c.at == atEnd, want)
			}
		}
	}
}

// Decoding in place gives what decoding apart gives, and what net/http's reader gives.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\n"), uint8(3))
	f.Add([]byte("5;a\r\nhello\r\nFF\r\n"+strings.Repeat("x", 255)+"\r\n0\r\n\r\n"), uint8(200))
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		var c chunks
		var got []byte
		var failed error
		for left := bytes.Clone(b); len(left) > 0 && failed == nil && c.at != atEnd; {
			src := left[:min(int(piece)+1, len(left))]
			nd, ns, err := c.decode(src, src)
			if ns == 0 && err == nil {
				t.Fatal("no progress")
			}
			got, left, failed = append(got, src[:nd]...), left[ns:], err
		}
		if failed != nil || c.at != atEnd {
			return
		}
		want, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(b)))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("of %q we read %q; net/http %q, %v", b, got, want, err)
		}
	})
}
