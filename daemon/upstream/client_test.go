package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// rawWorker answers each connection with what serve writes.
func rawWorker(t *testing.T, serve func(c net.Conn, n int32)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var n atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c, n.Add(1)) }()
		}
	}()
	return "http://" + l.Addr().String()
}

func readRequest(c net.Conn, br *bufio.Reader) error {
	r, err := http.ReadRequest(br)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err
}

func client(t *testing.T, c Config) *Client {
	t.Helper()
	u, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	return u
}

var post = &Request{Method: "POST", Path: "/v1/completions", Header: []Field{{"Content-Type", "application/json"}}, Body: []byte(`{}`)}

func TestTruncatedAnswerIsNotACleanEnd(t *testing.T) {
	f := func(name, head string) {
		t.Helper()
		url := rawWorker(t, func(c net.Conn, _ int32) {
			if readRequest(c, bufio.NewReader(c)) == nil {
				io.WriteString(c, head)
			}
		})
		r, err := client(t, Config{URL: url}).Do(context.Background(), post)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer r.Close()
		if _, err := io.ReadAll(r); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: body ended with %v; want io.ErrUnexpectedEOF", name, err)
		}
	}
	f("chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
	f("content length", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
}

func TestInterimAnswersAreSkipped(t *testing.T) {
	url := rawWorker(t, func(c net.Conn, _ int32) {
		if readRequest(c, bufio.NewReader(c)) == nil {
			io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	r, err := client(t, Config{URL: url}).Do(context.Background(), post)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); r.Status != 200 || string(b) != "ok" || err != nil {
		t.Fatalf("got %d %q %v; want 200 ok", r.Status, b, err)
	}
}

func TestStaleConnectionCostsNoRequest(t *testing.T) {
	url := rawWorker(t, func(c net.Conn, n int32) {
		br := bufio.NewReader(c)
		if readRequest(c, br) != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		if n == 1 {
			readRequest(c, br) // the second request on this connection gets a close without a byte
			return
		}
		time.Sleep(50 * time.Millisecond)
	})
	u := client(t, Config{URL: url})
	for i := range 2 {
		r, err := u.Do(context.Background(), post)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if b, err := io.ReadAll(r); string(b) != "ok" || err != nil {
			t.Fatalf("request %d: %q %v", i, b, err)
		}
		r.Close()
	}
}

func TestAbortedStreamNeverReachesTheNextRequest(t *testing.T) {
	gone := make(chan struct{}, 64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/plain" {
			io.WriteString(w, "clean")
			return
		}
		for {
			if _, err := io.WriteString(w, "data: somebody else's answer\n\n"); err != nil || r.Context().Err() != nil {
				gone <- struct{}{}
				return
			}
			w.(http.Flusher).Flush()
		}
	}))
	defer s.Close()
	u := client(t, Config{URL: s.URL})
	for range 32 {
		r, err := u.Do(context.Background(), &Request{Method: "POST", Path: "/stream"})
		if err != nil {
			t.Fatal(err)
		}
		io.ReadFull(r, make([]byte, 40))
		r.Close()
		p, err := u.Do(context.Background(), &Request{Method: "GET", Path: "/plain"})
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(p); string(b) != "clean" {
			t.Fatalf("got %q; want clean", b)
		}
		p.Close()
		select {
		case <-gone:
		case <-time.After(5 * time.Second):
			t.Fatal("the worker was not told that the client left")
		}
	}
}

func TestStallAndRefusal(t *testing.T) {
	url := rawWorker(t, func(c net.Conn, _ int32) {
		if readRequest(c, bufio.NewReader(c)) == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
			time.Sleep(3 * time.Second)
		}
	})
	r, err := client(t, Config{URL: url, ChunkTimeout: 50 * time.Millisecond}).Do(context.Background(), post)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); string(b) != "hello" || !errors.Is(err, ErrStalled) {
		t.Errorf("got %q, %v; want hello, ErrStalled", b, err)
	}
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	refused := "http://" + l.Addr().String()
	l.Close()
	if _, err := client(t, Config{URL: refused}).Do(context.Background(), post); !NotSent(err) {
		t.Errorf("refused connection gave %v; want NotSent", err)
	}
}
