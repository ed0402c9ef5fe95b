package upstream

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func TestRequestsThatCannotBeWritten(t *testing.T) {
	u := client(t, Config{URL: refusing(t)})
	f := func(r Request) {
		t.Helper()
		if _, _, err := ask(u, &r); !errors.Is(err, ErrRequest) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q %q %q: got %v; want ErrRequest without the value", r.Method, r.Path, r.Header, err)
		}
	}
	for _, method := range []string{"", "G T", "GET\r\n", "G\x00", "\xe4"} {
		f(Request{Method: method, Path: "/"})
	}
	for _, path := range []string{"", "x", "http://x/", "/ ", "/\r\nX: y", "/\x00", "/\x7f"} {
		f(Request{Method: "GET", Path: path})
	}
	for _, h := range []Field{
		{"", "x"}, {"a b", "x"}, {"a:", "x"}, {"a\r\nb", "x"}, {"a", "secret\r\nb: c"}, {"a", "secret\n"}, {"a", "secret\r"},
		{"a", "secret\x00"}, {"Content-Length", "1"}, {"transfer-encoding", "chunked"}, {"HOST", "x"},
	} {
		f(Request{Method: "GET", Path: "/", Header: []Field{h}})
	}
}

// The bytes that a worker gets: our Host, fields as they are, one length.
func TestWhatIsSent(t *testing.T) {
	sent := make(chan string, 1)
	url := rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, _ int) {
		b := make([]byte, 1000)
		n, _ := br.Read(b)
		sent <- string(b[:n])
		c.Write([]byte(ok))
	})
	u := client(t, Config{URL: url})
	r := &Request{Method: "POST", Path: "/v1/%41?b=ü", Header: []Field{{"x-LOWER", "ü\t"}, {"A", "1"}, {"a", "2"}}, Body: []byte("body")}
	if _, _, err := ask(u, r); err != nil {
		t.Fatal(err)
	}
	want := "POST /v1/%41?b=ü HTTP/1.1\r\nHost: " + strings.TrimPrefix(url, "http://") +
		"\r\nx-LOWER: ü\t\r\nA: 1\r\na: 2\r\nContent-Length: 4\r\n\r\nbody"
	if got := <-sent; got != want {
		t.Errorf("sent %q\nwant %q", got, want)
	}
}

func TestURLs(t *testing.T) {
	f := func(url, address string) {
		t.Helper()
		u, err := New(Config{URL: url})
		if (err == nil) != (address != "") || err == nil && u.pool.address != address {
			t.Errorf("%q: got %v; want %q", url, err, address)
		}
	}
	if u, err := New(Config{URL: "http://w"}); err != nil || u.pool.idle.timeout > 4*time.Second {
		t.Errorf("%v, idle for %v; want less than uvicorn's 5 s", err, u.pool.idle.timeout)
	}
	f("http://worker", "worker:80")
	f("https://worker", "worker:443")
	f("http://worker:8000", "worker:8000")
	f("http://[::1]:8000", "[::1]:8000")
	f("worker:8000", "")
	f("ftp://worker", "")
	f("http://", "")
	f("http://:80", "")
}

func TestPrintable(t *testing.T) {
	for at := range 20 {
		for c := range 256 {
			s := []byte("abcdefgh\xfft\x80lmnop~rst")
			s[at] = byte(c)
			if got, want := printable(string(s)), plain(&inValue, string(s)); got != want {
				t.Errorf("%q: got %v; want %v", s, got, want)
			}
		}
	}
}
