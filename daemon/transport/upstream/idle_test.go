package upstream

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// together runs n requests that are all under way at once, so that each has a connection of its own.
func together(t *testing.T, u *Client, n int) {
	t.Helper()
	var open []*Response
	for range n {
		r, err := u.Do(context.Background(), post)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, r)
	}
	for _, r := range open {
		if _, err := io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
}

func TestIdleConnectionsAreBoundedAndReaped(t *testing.T) {
	u := client(t, Config{URL: saying(t, ok, nil), MaxIdle: 3, IdleTimeout: 100 * time.Millisecond})
	together(t, u, 5)
	if s := u.Stats(); s.Dials != 5 || s.Idle > 3 || s.Open != s.Idle {
		t.Errorf("%+v; want 5 dials, at most 3 idle, none in use", s)
	}
	waittest.Until(t, "idle connections are closed", func() bool { return u.Stats().Open == 0 })
	together(t, u, 1) // the timer runs again
	waittest.Until(t, "idle connections are closed again", func() bool { return u.Stats().Open == 0 })
}

func TestLastBackIsFirstOut(t *testing.T) {
	var p = idle{limit: 9, timeout: time.Hour}
	defer p.close()
	a, b, start := new(conn), new(conn), time.Now()
	p.put(a, start)
	p.put(b, start.Add(time.Minute))
	if got := p.take(start.Add(62 * time.Minute)); got != nil {
		t.Error("a connection is used that is too old")
	}
	if got := []*conn{p.take(start), p.take(start), p.take(start)}; !slices.Equal(got, []*conn{b, a, nil}) {
		t.Errorf("got %v; want b, a, none", got)
	}
}

func TestCloseDropsTheIdleOnly(t *testing.T) {
	u := client(t, Config{URL: saying(t, ok, nil)})
	together(t, u, 2)
	r, err := u.Do(context.Background(), post)
	if err != nil {
		t.Fatal(err)
	}
	u.Close()
	if b, err := io.ReadAll(r); string(b) != "ok" || err != nil {
		t.Errorf("the request under way got %q, %v", b, err)
	}
	r.Close()
	together(t, u, 1) // a pool that was replaced may still be asked
	if s := u.Stats(); s.Open != 0 {
		t.Errorf("%+v; want nothing open", s)
	}
}

// A worker that closed, or spoke out of turn, on idle connections costs no request: they are seen to be dead before use.
func TestDeadIdleConnections(t *testing.T) {
	f := func(name string, then func(c *net.TCPConn)) {
		t.Helper()
		var done atomic.Int32
		u := client(t, Config{URL: rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, n int) {
			for readRequest(br) == nil {
				io.WriteString(c, ok)
				if n <= 4 {
					then(c)
					c.Close()
					done.Add(1)
					return
				}
			}
		})})
		together(t, u, 4)
		waittest.Until(t, "worker is done", func() bool { return done.Load() == 4 })
		if _, body, err := ask(u, post); body != "ok" || err != nil {
			t.Errorf("%s: got %q, %v", name, body, err)
		}
		if s := u.Stats(); s.Open != 1 || s.Idle != 1 {
			t.Errorf("%s: %+v; want the dead ones gone", name, s)
		}
	}
	f("FIN", func(*net.TCPConn) {})
	f("RST", reset)
	f("unasked bytes", func(c *net.TCPConn) { io.WriteString(c, ok) })
}

// A worker that closes just when the request comes costs none either. The replacement is a fresh connection even if the
// pool has more, since those may be as dead.
func TestReplacedByAFreshConnection(t *testing.T) {
	f := func(name string, end func(*net.TCPConn)) {
		t.Helper()
		u := client(t, Config{URL: rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, n int) {
			for served := 0; readRequest(br) == nil; served++ {
				if n <= 3 && served == 1 {
					end(c)
					return
				}
				io.WriteString(c, ok)
			}
		})})
		together(t, u, 3)
		if _, body, err := ask(u, post); body != "ok" || err != nil {
			t.Errorf("%s: got %q, %v", name, body, err)
		}
		if s := u.Stats(); s.Reused != 1 || s.Replaced != 1 || s.Dials != 4 {
			t.Errorf("%s: %+v; want 1 reused, 1 replaced, 4 dials", name, s)
		}
	}
	f("FIN", func(*net.TCPConn) {})
	f("RST", reset)
}

// After the first byte of an answer nothing is repeated; and a fresh connection that gives nothing is not either.
func TestNotRepeated(t *testing.T) {
	var seen atomic.Int32
	partial := ""
	url := rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, n int) {
		for served := 0; readRequest(br) == nil; served++ {
			seen.Add(1)
			if n > 1 || served > 0 {
				io.WriteString(c, partial)
				return
			}
			io.WriteString(c, ok)
		}
	})
	u := client(t, Config{URL: url})
	together(t, u, 1)
	if _, _, err := ask(u, post); !Unanswered(err) || seen.Load() != 3 {
		t.Errorf("got %v after %d requests; want Unanswered after 3", err, seen.Load())
	}
	partial = "HTTP/1.1 2"
	if _, _, err := ask(u, post); err == nil || Unanswered(err) || seen.Load() != 4 {
		t.Errorf("got %v after %d requests; want a broken answer after 4", err, seen.Load())
	}
}

// A worker that dies with the request, and takes no connection from then on, may have seen it.
func TestDeadWorkerIsUnanswered(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		br := bufio.NewReader(c)
		readRequest(br)
		io.WriteString(c, ok)
		readRequest(br)
		l.Close()
		c.Close()
	}()
	u := client(t, Config{URL: "http://" + l.Addr().String()})
	together(t, u, 1)
	if _, _, err := ask(u, post); !Unanswered(err) || NotSent(err) {
		t.Errorf("got %v; want Unanswered, and not NotSent", err)
	}
}

func TestCloseIdleServesOn(t *testing.T) {
	u := client(t, Config{URL: saying(t, ok, nil)})
	for range 3 {
		together(t, u, 1)
		u.CloseIdle()
		if s := u.Stats(); s.Idle != 0 || s.Open != 0 {
			t.Errorf("after CloseIdle: %+v; want no connection", s)
		}
	}
	if s := u.Stats(); s.Dials != 3 {
		t.Errorf("%d connections were made; want one a request", s.Dials)
	}
}

func TestNoDescriptorIsTold(t *testing.T) {
	for err, want := range map[error]bool{syscall.EMFILE: true, syscall.ENFILE: true, syscall.ECONNREFUSED: false} {
		op := &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", err)}
		if got := NoDescriptor(&failure{what: "no connection", err: op, notSent: true}); got != want {
			t.Errorf("NoDescriptor(%v) = %v", err, got)
		}
	}
}
