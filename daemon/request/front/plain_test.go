package front

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

const plainPost = "POST /v1/completions HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 2\r\n"

// TestPlainHead: what a lane serves, and what it leaves to fasthttp.
func TestPlainHead(t *testing.T) {
	f := func(request string, want bool) {
		t.Helper()
		var h plainHead
		if got := h.read([]byte(request), 1000); got != want {
			t.Errorf("%.200q: plain %v; want %v", request, got, want)
		}
	}
	with := func(lines string) string { return plainPost + lines + "\r\n{}" }
	line := func(line string) string { return strings.Replace(with(""), "POST /v1/completions HTTP/1.1", line, 1) }
	f(with(""), true)
	f(with("")+"GET / HTTP/1.1\r\n", true)
	f(with("Connection: keep-alive\r\nAccept: */*\r\nX-Empty:\r\nX-Blanks:  a b \r\n"), true)
	f(line("POST /v1/chat/completions HTTP/1.1"), true)
	f(line("POST /v1//x/../y HTTP/1.1"), true) // the visit judges the path
	f(plainPost+"\r", false)
	f(plainPost, false)
	f("", false)
	f("\r\n"+with(""), false)
	for _, l := range []string{"GET /v1/models HTTP/1.1", "PUT /v1/completions HTTP/1.1", "POST /health HTTP/1.1",
		"POST /v1/completions HTTP/1.0", "POST /v1/completions HTTP/1.2", "POST /v1/completions  HTTP/1.1",
		"POST /v1/completions HTTP/1.1 ", "POST /v1/completions?a=b HTTP/1.1", "POST /v1/completions#a HTTP/1.1",
		"POST /v1/%63ompletions HTTP/1.1", "POST /v1/a b HTTP/1.1", "POST /v1/\x80 HTTP/1.1", "POST /v1/a\r HTTP/1.1",
		"POST /v1/completions", "POST http://localhost:8080/v1/completions HTTP/1.1"} {
		f(line(l), false)
	}
	for _, lines := range []string{"Host: localhost:8080\r\n", "Content-Length: 2\r\n", "content-length: 3\r\n",
		"Transfer-Encoding: chunked\r\n", "transfer-encoding: identity\r\n", "Expect: 100-continue\r\n", "Upgrade: h2c\r\n",
		"Connection: close\r\n", "Connection: keep-alive, x\r\n", "Proxy-Connection: close\r\n", "TE: trailers\r\n",
		"Trailer: x\r\n", "X: a\r\n b\r\n", " X: a\r\n", "X : a\r\n", "X\r\n", ": a\r\n", "X: a\n", "X: a\rb\r\n", "X: \x00\r\n",
		"X: \x80\r\n", "X: a\tb\r\n", "X: \ta\r\n", "(X): a\r\n", "X:a\r\r\n"} {
		f(with(lines), false)
	}
	replaced := func(old, new string) { t.Helper(); f(strings.Replace(with(""), old, new, 1), false) }
	replaced("Host: localhost:8080\r\n", "")
	for _, host := range []string{"", "Localhost", "a@b", "[::1]:80", "a:b", "a:", ":80", "a/b", "a b", "a:080"} {
		replaced("localhost:8080", host)
	}
	replaced("Content-Length: 2\r\n", "")
	for _, length := range []string{"", "0", "+2", "-2", "02", "2 2", "2,2", "0x2", "2.", "1000000000000"} {
		replaced("Length: 2", "Length: "+length)
	}
	f(with(strings.Repeat("X: a\r\n", mostFields-2)), true)
	f(with(strings.Repeat("X: a\r\n", mostFields-1)), false)
	f(with("X: "+strings.Repeat("a", 1000-len(plainPost)-len("X: \r\n\r\n"))+"\r\n"), true)
	f(with("X: "+strings.Repeat("a", 1001-len(plainPost)-len("X: \r\n\r\n"))+"\r\n"), false)
}

// FuzzPlainHead holds what a lane takes to what fasthttp, and readHeader behind it, read of the same bytes: method,
// target, fields, body, and where the next request begins.
func FuzzPlainHead(f *testing.F) {
	f.Add([]byte(plainPost + "\r\n{}"))
	f.Add([]byte(plainPost + "Connection: keep-alive\r\nX-Blanks:  a b \r\nX-Empty:\r\n\r\n{}POST / HTTP/1.1\r\n\r\n"))
	for _, lines := range []string{"Host: a\r\n", "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "X: a\n\r\n",
		"X: a\r\n b\r\n", "X : a\r\n", "Connection: close\r\n", "X:\ta\r\n", "Expect: 100-continue\r\n", "Cookie: a=b; c\r\n"} {
		f.Add([]byte(plainPost + lines + "\r\n{}rest"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h plainHead
		if !h.read(b, 16<<10) {
			return
		}
		r := bufio.NewReaderSize(bytes.NewReader(b), 16<<10)
		var req fasthttp.Request
		req.Header.DisableNormalizing()
		if err := req.Header.Read(r); err != nil {
			t.Fatalf("%q: fasthttp refuses it: %v", b, err)
		}
		var fc fasthttp.RequestCtx
		fc.Init(&req, nil, nil)
		s := (*served)(&fc)
		fields, sound := s.fields(nil)
		if !sound {
			t.Fatalf("%q: front refuses it", b)
		}
		if !fc.IsPost() || string(fc.URI().PathOriginal()) != h.path || len(fc.URI().QueryString()) > 0 ||
			string(fc.Host()) != h.host || !fc.Request.Header.IsHTTP11() || fc.Request.Header.ConnectionClose() ||
			fc.Request.MayContinue() {
			t.Fatalf("%q: %s %s of %s; want POST %s of %s", b, fc.Method(), fc.URI().PathOriginal(), fc.Host(), h.path, h.host)
		}
		if int64(fc.Request.Header.ContentLength()) != h.length {
			t.Fatalf("%q: length %d; want %d", b, fc.Request.Header.ContentLength(), h.length)
		}
		if !slices.Equal(fields, h.fields) {
			t.Fatalf("%q: fields %q; want %q", b, fields, h.fields)
		}
		rest, _ := io.ReadAll(r)
		if !bytes.Equal(rest, b[h.size:]) {
			t.Fatalf("%q: %q behind the head; want %q", b, rest, b[h.size:])
		}
	})
}

// BenchmarkPlainHead: what the parse of a head costs, beside readHeader alone.
func BenchmarkPlainHead(b *testing.B) {
	head := []byte(plainPost + "User-Agent: OpenAI/Python 1.2.3\r\nAccept: application/json\r\nContent-Type: " +
		"application/json\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\nAccept-Encoding: gzip, deflate\r\n\r\n{}")
	var h plainHead
	b.ReportAllocs()
	for b.Loop() {
		if !h.read(head, 16<<10) {
			b.Fatal("it is plain")
		}
	}
}
