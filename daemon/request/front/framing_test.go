package front

import (
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

func TestReadHeader(t *testing.T) {
	f := func(raw string, http11, sound bool, want ...string) {
		t.Helper()
		fields, ok := readHeader(nil, []byte(raw), http11)
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
}

func FuzzReadHeader(f *testing.F) {
	f.Add([]byte("Host: a\r\nContent-Length: 1\r\n\r\n"), true)
	f.Add([]byte("A: b\nC: d\r\n\r\n"), true)
	f.Add([]byte("Transfer-Encoding: chunked\r\n\r\n"), false)
	f.Fuzz(func(t *testing.T, raw []byte, http11 bool) {
		before := []upstream.Field{{Name: "before", Value: "it"}}
		fields, sound := readHeader(before, raw, http11)
		if len(fields) == 0 || fields[0] != before[0] {
			t.Fatalf("the fields before are %v", fields)
		}
		if !sound {
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

func TestPlainTarget(t *testing.T) {
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
		if got := plainTarget(&fc); got != want {
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
