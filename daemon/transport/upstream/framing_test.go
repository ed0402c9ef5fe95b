package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestBadChunkFraming: what is not exactly RFC 9112's framing is an error, in whatever pieces it comes; two readers that differ on
// it see different answers.
func TestBadChunkFraming(t *testing.T) {
	f := func(src string) {
		t.Helper()
		for piece := 1; piece <= min(len(src), 40); piece++ {
			var c chunks
			var err error
			for left := []byte(src); len(left) > 0 && err == nil && c.at != atEnd; {
				var ns int
				_, ns, err = c.decode(make([]byte, 64), left[:min(piece, len(left))])
				left = left[ns:]
			}
			if !errors.Is(err, errAnswer) {
				t.Errorf("%q in pieces of %d: %v; want an error", src, piece, err)
				return
			}
		}
	}
	for _, size := range []string{"", " 5", "+5", "5 x", "0x5", "5_0", "g", "\r", "5\r5", "5\n", "\n5", "1000000000000005", "8000000000000000", "ffffffffffffffff",
		strings.Repeat("0", 20) + "5"} {
		f(size + "\r\nhello\r\n0\r\n\r\n")
	}
	f("5\rxhello\r\n0\r\n\r\n")
	f("5\r\nhello\rx0\r\n\r\n")
	f("5\r\nhellox\n0\r\n\r\n")
	f("5\r\nhello\n0\r\n\r\n")
	f("5\r\nhello0\r\n\r\n")
	f("0\r\n\rx")
	f("0\r\n\n")
	f("0\rx\r\n")
	f("0\r\nA: b\rx\r\n\r\n")
	f("0\r\nA: b\n\r\n")
	f("0\r\nA: \x00\r\n\r\n")
	f("5;\x01\r\nhello\r\n0\r\n\r\n")
	f("5;" + strings.Repeat("x", maxAside+1) + "\r\nhello\r\n0\r\n\r\n")
}

// TestChunkSizesToTheirBound: 15 digits are read, and a chunk of 0 however it is written is the last one.
func TestChunkSizesToTheirBound(t *testing.T) {
	var c chunks
	if _, _, err := c.decode(nil, []byte("7ffffffffffffff\r\n")); err != nil || c.left != 0x7ffffffffffffff {
		t.Errorf("15 digits: %x, %v", c.left, err)
	}
	for _, last := range []string{"0", "000", "0000000000", "0;x"} {
		c = chunks{}
		dst := make([]byte, 16)
		n, _, err := c.decode(dst, []byte("1\r\na\r\n"+last+"\r\n\r\nrest"))
		if err != nil || c.at != atEnd || !bytes.Equal(dst[:n], []byte("a")) {
			t.Errorf("%q: %q, at %d, %v; want the end behind one byte", last, dst[:n], c.at, err)
		}
	}
}

// TestSurplusInALaterRead: bytes behind the end of an answer may be meant for the next one. Its connection is not used again.
func TestSurplusInALaterRead(t *testing.T) {
	u := client(t, Config{URL: rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, _ int) {
		for readRequest(br) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
			time.Sleep(20 * time.Millisecond)
			io.WriteString(c, "0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
		}
	})})
	for range 3 {
		if _, got, err := ask(u, post); got != "ok" || err != nil {
			t.Errorf("got %q, %v; want ok", got, err)
		}
	}
	if s := u.Stats(); s.Reused > 0 || s.Idle > 0 {
		t.Errorf("%+v; want no connection kept", s)
	}
}
