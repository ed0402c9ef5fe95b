package hyperpod

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// Bodies that break off, and lengths that are missing, leave nothing behind.
func TestBrokenBodies(t *testing.T) {
	s, store, _ := serve(t, 16<<20)
	f := func(text, want string) {
		t.Helper()
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second))
		io.WriteString(c, text)
		c.(*net.TCPConn).CloseWrite()
		if got, _ := io.ReadAll(c); !strings.HasPrefix(string(got), want) {
			t.Errorf("%.60q answers %.100q; want %s", text, got, want)
		}
	}
	f("PUT /v1/kv/b/k HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nshort", "HTTP/1.1 400")
	f("PUT /v1/kv/b/k HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "HTTP/1.1 411")
	f("PUT /v1/kv/b/k HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400")
	f("PUT /v1/kv/b/k HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n", "HTTP/1.1 400")
	f("PUT /v1/kv/b/%zz HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", "HTTP/1.1 400")
	if n := store.Stats(); n.Fillings != 0 || n.ReservedBytes != 0 || n.Entries != 0 {
		t.Errorf("left behind: %+v", n)
	}
}

// TestFraming: the unread rest of a body is no part of the next request, and a client that is refused within a long
// body can read the reason.
func TestFraming(t *testing.T) {
	s, store, _ := serve(t, 16<<20)
	f := func(name, text string, want ...int) {
		t.Helper()
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.WriteString(c, text); err != nil {
			t.Errorf("%s: it cannot be sent: %v", name, err)
		}
		in := bufio.NewReader(c)
		for i, status := range want {
			a, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%s: answer %d: %v", name, i, err)
			}
			if _, err := io.Copy(io.Discard, a.Body); err != nil || a.StatusCode != status {
				t.Errorf("%s: answer %d is %s, %v; want %d", name, i, a.Status, err, status)
			}
			if a.Close {
				return
			}
		}
	}
	const miss = "POST /v1/kv/b/none/leases HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
	body := func(n int) string {
		return fmt.Sprintf("HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", n, strings.Repeat(miss, n/len(miss)+1)[:n])
	}
	f("three in one piece", "PUT /v1/kv/b/k "+body(70_000)+"PUT /v1/kv/b/k "+body(70_000)+miss, 200, 409, 404)
	f("a body where none is read", "POST /v1/kv/b/none/leases "+body(1000)+miss, 404, 404)
	f("a body of an unknown path", "PUT /v2/x "+body(100_000)+miss, 404, 404)
	f("a long body of an unknown path", "PUT /v2/x "+body(6<<20)+miss, 404)
	f("a value that is too large", "PUT /v1/kv/b/large "+body(16<<20)+miss, 413)
	f("a head that is too long", "PUT /v1/kv/b/k HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 100_000)+"\r\n\r\n", 431)
	f("no HTTP", "SET k v\r\n\r\n", 400)
	f("lines without CR", "POST /v1/kv/b/none/leases HTTP/1.1\nHost: a\n\n", 400)
	f("PUT without a length", "PUT /v1/kv/b/nothing HTTP/1.1\r\nHost: a\r\n\r\n"+
		"PUT /v1/kv/b/nothing HTTP/1.1\r\nHost: a\r\n\r\n"+miss, 400, 400, 404)
	if n := store.Stats(); n.Fillings != 0 || n.Entries != 1 {
		t.Errorf("left behind: %+v", n)
	}
}

// TestMaxConns: a connection beyond the limit is closed, and one that ends makes room.
func TestMaxConns(t *testing.T) {
	s, _, _ := serve(t, 16<<20)
	s.listener.SetMaxConns(2)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(20 * time.Second))
		return c
	}
	ask := func(c net.Conn) error {
		_, _ = io.WriteString(c, "POST /v1/leases/x/release HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
		_, err := http.ReadResponse(bufio.NewReader(c), nil)
		return err
	}
	first, second := dial(), dial()
	if err := errors.Join(ask(first), ask(second)); err != nil {
		t.Fatal(err)
	}
	if err := ask(dial()); err == nil {
		t.Error("a third connection is served")
	}
	first.Close()
	for end := time.Now().Add(20 * time.Second); ask(dial()) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the room of a connection that has ended is not given to another")
		}
	}
}

// TestPanic: a request that makes the door panic gets 500, and the door stays open.
func TestPanic(t *testing.T) {
	var lines bytes.Buffer
	s, err := New(Config{Listen: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(&lines, nil))}) // without a store
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run() }()
	w := &worker{t: t, s: s, url: "http://" + s.Addr()}
	for range 2 {
		if status, text := w.do("POST", "/v1/kv/b/k/leases", nil); status != 500 || text == "" {
			t.Errorf("answers %d %s; want 500", status, text)
		}
	}
	s.Close(t.Context())
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if !strings.Contains(lines.String(), "BUG: a request at the KV cache made the daemon panic") {
		t.Errorf("the log has %s", &lines)
	}
}

// TestCloseEndsAll: a request that has not ended in time is cut off, and nothing of it is left.
func TestCloseEndsAll(t *testing.T) {
	s, store, w := serve(t, 16<<20)
	if status, _ := w.do("PUT", "/v1/kv/b/k", make([]byte, 100)); status != 200 {
		t.Fatal(status)
	}
	w.lease("/v1/kv/b/k")
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "PUT /v1/kv/b/half HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("half", firstRoom/4))
	waittest.Until(t, "the value's room is taken", func() bool { return store.Stats().Fillings == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	s.Close(ctx)
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection stays open")
	}
	waittest.Until(t, "nothing is left", func() bool {
		n := store.Stats()
		return n.Fillings == 0 && n.Leases == 0 && s.Stats().Connections == 0 && s.Stats().Leases == 0
	})
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Error("the door takes connections after its end")
	}
}
