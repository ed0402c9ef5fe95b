package front

import (
	"bufio"
	"bytes"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

func TestReadHeader(t *testing.T) {
	f := func(raw string, http11, sound bool, want ...string) {
		t.Helper()
		fields, framing := readHeader(nil, []byte(raw), http11)
		ok := framing.sound
		var got []string
		for _, field := range fields {
			got = append(got, field.Name+"="+field.Value)
		}
		if ok != sound || sound && !slices.Equal(got, want) {
			t.Errorf("%q: %q, sound %v; want %q, %v", raw, got, ok, want, sound)
		}
	}
	f("", true, true)
	f("\r\n", true, true)
	f("Host: a\r\n\r\n", true, true, "Host=a")
	f("host:a\r\nX: \t b c \t\r\nY:\r\n\r\n", true, true, "host=a", "X=b c", "Y=")
	f("A: b:c\r\n\r\n", true, true, "A=b:c")
	f("A: b\r\n\r\nC: d\r\n", true, true, "A=b") // what follows is the body's
	f("A: b\r\n", true, true, "A=b")             // fasthttp has cut the end off

	f("A: b\n\r\n", true, false) // ends without a CR
	f("A: b\nC: d\r\n\r\n", true, false)
	f("A: b", true, false)
	f("A: b\r\n c\r\n\r\n", true, false) // goes on
	f("A: b\r\n\tc: d\r\n\r\n", true, false)
	f("no colon\r\n\r\n", true, false)

	f("Content-Length: 1\r\n\r\n", true, true, "Content-Length=1")
	f("Transfer-Encoding: chunked\r\n\r\n", true, true, "Transfer-Encoding=chunked")
	f("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", true, false)
	f("transfer-encoding: chunked\r\nCONTENT-LENGTH: 1\r\n\r\n", true, false)
	f("Transfer-Encoding: chunked\r\n\r\n", false, false) // HTTP/1.0 has none
	f("Content-Length: 1\r\n\r\n", false, true, "Content-Length=1")

	f("Content-Length: 1\r\nContent-Length: 1\r\n\r\n", true, false)
	f("Content-Length: +1\r\n\r\n", true, false)
	f("Content-Length: \r\n\r\n", true, false)
}

// TestReadHeaderClose: a client that wants the connection closed is found in each form that it may ask in.
func TestReadHeaderClose(t *testing.T) {
	f := func(raw string, want bool) {
		t.Helper()
		if _, got := readHeader(nil, []byte(raw), true); got.close != want {
			t.Errorf("%q: close %v; want %v", raw, got.close, want)
		}
	}
	f("Connection: close\r\n\r\n", true)
	f("connection: Close\r\n\r\n", true)
	f("Connection: keep-alive, close\r\nConnection: x\r\n\r\n", true)
	f("Connection: keep-alive\r\n\r\n", false)
	f("Connectiom: close\r\n\r\n", false)
	f("", false)
}

func FuzzReadHeader(f *testing.F) {
	f.Add([]byte("Host: a\r\nContent-Length: 1\r\n\r\n"), true)
	f.Add([]byte("A: b\nC: d\r\n\r\n"), true)
	f.Add([]byte("Transfer-Encoding: chunked\r\n\r\n"), false)
	f.Fuzz(func(t *testing.T, raw []byte, http11 bool) {
		before := []upstream.Field{{Name: "before", Value: "it"}}
		fields, framing := readHeader(before, raw, http11)
		if len(fields) == 0 || fields[0] != before[0] {
			t.Fatalf("the fields before are %v", fields)
		}
		if !framing.sound {
			return
		}
		length, encoding := false, false
		for _, field := range fields[1:] {
			length = length || strings.EqualFold(field.Name, "content-length")
			encoding = encoding || strings.EqualFold(field.Name, "transfer-encoding")
			if strings.ContainsAny(field.Name, ":\n") || strings.Contains(field.Value, "\n") {
				t.Fatalf("field %q of %q", field, raw)
			}
		}
		if encoding && (length || !http11) {
			t.Fatalf("%q is sound", raw)
		}
	})
}

func TestIsPlainTarget(t *testing.T) {
	f := func(line, host string, want bool) {
		t.Helper()
		method, rest, _ := strings.Cut(line, " ")
		target, version, _ := strings.Cut(rest, " ")
		var fc fasthttp.RequestCtx
		h := &fc.Request.Header
		h.SetMethod(method)
		h.SetRequestURI(target)
		h.SetProtocol(version)
		h.SetHost(host)
		if got := isPlainTarget(&fc); got != want {
			t.Errorf("%q to %q: %v; want %v", line, host, got, want)
		}
	}
	f("GET / HTTP/1.1", "a", true)
	f("GET / HTTP/1.0", "a", true)
	f("GET / HTTP/1.2", "a", false)
	f("GET / HTTP/2.0", "a", false)
	f("GET / http/1.1", "a", false)
	f("GET http://a/x HTTP/1.1", "a", true)
	f("GET http://A/x HTTP/1.1", "a", true)
	f("GET https://a:8080 HTTP/1.1", "a:8080", true)
	f("GET http://a/x HTTP/1.1", "b", false)
	f("GET http://a:1/x HTTP/1.1", "a", false)
	f("OPTIONS * HTTP/1.1", "a", true)
	f("GET x HTTP/1.1", "a", false)
	f("CONNECT a:80 HTTP/1.1", "a:80", false)
}

// headOf has fasthttp read a head, and then calls beforeBody as fasthttp does. It returns the length that fasthttp
// found in it.
func headOf(b []byte) (fc *fasthttp.RequestCtx, r *bufio.Reader, length int, err error) {
	r = bufio.NewReaderSize(bytes.NewReader(b), 16<<10)
	fc = new(fasthttp.RequestCtx)
	fc.Request.Header.DisableNormalizing()
	fc.Init2(new(net.TCPConn), nil, false)
	fc.Request.Header.DisableNormalizing()
	if err = fc.Request.Header.Read(r); err != nil {
		return fc, r, 0, err
	}
	length = fc.Request.Header.ContentLength()
	beforeBody(&fc.Request.Header)
	return fc, r, length, nil
}

// FuzzLength holds the length that a request has to the one that fasthttp has read of its head, for both must agree on
// where the next request begins. Before the request has it, fasthttp waits for no body.
func FuzzLength(f *testing.F) {
	const head = "POST /v1/completions HTTP/1.1\r\nHost: localhost:8080\r\n"
	for _, lines := range []string{"", "Content-Length: 2\r\n", "content-length:002\t\r\n", "Content-Length: 0\r\n",
		"Content-Length: +2\r\n", "Content-Length: 2\r\nContent-Length: 2\r\n", "Transfer-Encoding: chunked\r\n",
		"Transfer-Encoding: identity\r\n", "Content-Length: 2\r\nTransfer-Encoding: identity\r\n", "X: a\r\n Content-Length: 2\r\n",
		"Content-Length: 99999999999999999999\r\n", "Content-Length : 2\r\n", "Content-Length: 2\nX: a\r\n"} {
		f.Add([]byte(head + lines + "\r\n{}rest"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fc, _, length, err := headOf(b)
		if err != nil {
			return
		}
		header := &fc.Request.Header
		if hidden := header.ContentLength(); hidden > 0 {
			t.Fatalf("%q: fasthttp waits for %d bytes", b, hidden)
		}
		q := request{fc: fc}
		q.readHeader()
		if got := header.ContentLength(); q.sound && got != length {
			t.Fatalf("%q: the length is %d; fasthttp read %d", b, got, length)
		}
	})
}
