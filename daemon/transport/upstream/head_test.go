package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func parseAll(b []byte) (h head, rest []byte, ok bool) {
	end, _, err := headEnd(b, 0)
	if err != nil || end == 0 {
		return h, nil, false
	}
	err = h.parse(string(b[:end]))
	return h, b[end:], err == nil
}

func TestBadHeads(t *testing.T) {
	f := func(head string) {
		t.Helper()
		if h, _, ok := parseAll([]byte(head)); ok {
			t.Errorf("%q is taken as %+v; want an error", head, h)
		}
	}
	for _, line := range []string{
		"HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 20", "HTTP/1.1 2000", "HTTP/1.1  200", "HTTP/1.1 2x0 OK", "HTTP/2.0 200 OK", "HTTP/1.2 200 OK",
		"http/1.1 200 OK", "HTTP/1.1 099 X", "HTTP/1.1 101 X", "HTTP/1.1 200 O\x00K", "HTTP/1.1 200 O\rK", " HTTP/1.1 200 OK", "",
	} {
		f(line + "\r\n\r\n")
	}
	for _, field := range []string{
		"no colon", ": no name", "a b: c", "a : b", " folded: x", "\tx", "a: b\x00", "a: b\rc", "a\x80: b", "a: b\n c",
		"Content-Length: +5", "Content-Length: 0x5", "Content-Length: 5, 5", "Content-Length:", "Content-Length: -1",
		"Content-Length: 9999999999999999999", "Transfer-Encoding: xchunked", "Transfer-Encoding: gzip, chunked",
		"Transfer-Encoding: identity", "Transfer-Encoding:", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding: chunked\r\nContent-Length: 5", "Content-Length: 5\r\ntransfer-encoding: chunked",
	} {
		f("HTTP/1.1 200 OK\r\n" + field + "\r\n\r\n")
	}
	f("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	f("HTTP/1.1 200 OK\n\n")
	f("HTTP/1.1 200 OK\r\na: b\n\r\n")
}

func TestHeaderKeepsOrderAndSpelling(t *testing.T) {
	h, _, ok := parseAll([]byte("HTTP/1.1 207 M\r\nx-B:  one \r\nA:\r\nX-b: t\xe9o\r\n\r\n"))
	want := Header{{"x-B", "one"}, {"A", ""}, {"X-b", "t\xe9o"}}
	if !ok || h.status != 207 || !slices.Equal(h.header, want) {
		t.Errorf("got %+v; want %v", h, want)
	}
	if got := h.header.Get("X-B"); got != "one" {
		t.Errorf("Get gives %q; want the first", got)
	}
}

// Where we and net/http both take a head, we agree on all that matters, and we take nothing that net/http refuses.
func FuzzHead(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.0 404 Not Found\r\na: b\r\n\r\n", "HTTP/1.1 204\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n3;e=\"f\"\r\nabc\r\n0\r\nx: y\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close, x\r\n\r\nto the end", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\ntransfer-encoding: \tchunked \r\n\r\n0005\r\nhello\r\n00\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, rest, ok := parseAll(b)
		theirs, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
		if !ok {
			return
		}
		if err != nil {
			if stricter(err) {
				return
			}
			t.Fatalf("we take %q, net/http says %v", b, err)
		}
		if h.status != theirs.StatusCode || h.chunked != (len(theirs.TransferEncoding) > 0) {
			t.Fatalf("we read %+v, net/http %d %v", h, theirs.StatusCode, theirs.TransferEncoding)
		}
		for name, values := range theirs.Header {
			if got := h.header.Get(name); got != values[0] {
				t.Fatalf("%s: we read %q, net/http %q", name, got, values[0])
			}
		}
		if h.status >= 200 {
			sameBody(t, h, rest, theirs)
		}
	})
}

// stricter are the refusals of net/http that change neither where an answer ends nor its content.
func stricter(err error) bool {
	return strings.Contains(err.Error(), "bad trailer key")
}

func sameBody(t *testing.T, h head, rest []byte, theirs *http.Response) {
	want, wantErr := io.ReadAll(theirs.Body)
	x := body{framed: byClose, left: h.length}
	switch {
	case h.status == 204 || h.status == 304 || h.length == 0:
		return
	case h.chunked:
		x.framed = byChunks
	case h.length > 0:
		x.framed = byLength
	}
	got := make([]byte, len(rest))
	n, _, err := x.take(got, rest)
	whole := err == io.EOF || err == nil && x.framed == byClose
	if whole && (wantErr != nil || !bytes.Equal(got[:n], want)) {
		if x.framed == byChunks && wantErr != nil {
			return // net/http parses trailers, we drop them
		}
		t.Fatalf("we read %q, net/http %q %v", got[:n], want, wantErr)
	}
	if !whole && wantErr == nil && x.framed != byChunks { // net/http takes some chunk framings that we do not
		t.Fatalf("we end with %v, net/http reads %q", err, want)
	}
}
