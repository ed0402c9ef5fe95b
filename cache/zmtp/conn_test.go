package zmtp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

const soon = 10 * time.Second // a wait that only a failing test sees the end of

// echo answers each message with itself.
func echo(c *Conn) {
	for {
		m, err := c.Recv()
		if err != nil || c.Send(m...) != nil {
			return
		}
	}
}

func listen(t *testing.T, addr string, c Config, handle func(*Conn)) (*Listener, string) {
	t.Helper()
	l, err := Listen(t.Context(), addr, c, handle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, l.Addr().String()
}

func dial(t *testing.T, addr string, c Config) *Conn {
	t.Helper()
	conn, err := Dial(t.Context(), addr, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestRequestAndReply(t *testing.T) {
	big := bytes.Repeat([]byte("b"), 3<<20)
	for _, addr := range []string{"tcp://127.0.0.1:0", "ipc://" + filepath.Join(t.TempDir(), "s"), "ipc://@warmpath-zmtp-test"} {
		var identity atomic.Value
		l, at := listen(t, addr, Config{Kind: ROUTER}, func(c *Conn) {
			identity.Store(c.Peer().Identity)
			echo(c)
		})
		c := dial(t, at, Config{Kind: DEALER, Identity: "me"})
		for _, want := range [][][]byte{{nil, []byte("hi")}, {nil}, {big, nil, big}} {
			if err := c.Send(want...); err != nil {
				t.Fatal(err)
			}
			got, err := c.Recv()
			if err != nil || len(got) != len(want) {
				t.Fatalf("%s: %d frames, %v; want %d", addr, len(got), err, len(want))
			}
			for i := range want {
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("%s: frame %d has %d bytes; want %d", addr, i, len(got[i]), len(want[i]))
				}
			}
		}
		if got := identity.Load(); got != "me" {
			t.Errorf("%s: identity is %q", addr, got)
		}
		l.Close()
		if _, err := c.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: after Close Recv returns %v; want EOF", addr, err)
		}
	}
}

func TestRefused(t *testing.T) {
	_, router := listen(t, "tcp://127.0.0.1:0", Config{Kind: ROUTER, Peers: 1}, echo)
	raw := func(answer string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, answer)
				defer c.Close()
			}
		}()
		return "tcp://" + l.Addr().String()
	}
	curve := greeting()
	copy(curve[mechanismAt:], "CURVE")
	old := greeting()
	old[versionAt] = 1
	const late = "i/o timeout"
	f := func(addr string, kind Kind, want string) {
		t.Helper()
		config := Config{Kind: kind}
		if want == late {
			config.Handshake = 200 * time.Millisecond
		}
		c, err := Dial(t.Context(), addr, config)
		if err == nil {
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want %q in it", addr, err, want)
		}
	}
	f(router, SUB, `the peer is a "ROUTER"; a SUB talks to [PUB XPUB] only`)
	f(raw("HTTP/1.1 400 Bad Request\r\n"), SUB, "is this a ZeroMQ port?")
	f(raw(string(curve)), SUB, `wants mechanism "CURVE"`)
	f(raw(string(old)), SUB, "before 4.0")
	f(raw(string(greeting())+"\x00\x01a"), SUB, "a message before READY")
	f(raw(string(greeting())+"\x04\x0c\x05ERROR\x05nope!"), SUB, "the peer refuses")
	f(raw(""), SUB, late)
	f("tcp://127.0.0.1:1", SUB, "connection refused")
	f("tcp://*:1", SUB, "names no host")
	f("inproc://x", SUB, "want tcp://HOST:PORT or ipc://PATH")
	f("127.0.0.1:1", SUB, "has no scheme")
	f("tcp://127.0.0.1:x", SUB, "want 0 to 65535")
	f("ipc://"+strings.Repeat("a", 200), SUB, "107 bytes")
}

func TestPeersAreCounted(t *testing.T) {
	var told atomic.Int64
	l, at := listen(t, "tcp://127.0.0.1:0", Config{Kind: ROUTER, Peers: 2, Handshake: time.Second,
		Refused: func(Address, error) { told.Add(1) }}, echo)
	host := strings.TrimPrefix(at, "tcp://")
	for range 2 { // two that send nothing
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	waittest.Until(t, "peers come and go", func() bool { n, _ := l.Peers(); return n == 2 })
	if _, err := Dial(t.Context(), at, Config{Kind: DEALER}); err == nil {
		t.Error("a third peer was let in")
	}
	waittest.Until(t, "peers come and go", func() bool { n, refused := l.Peers(); return n == 0 && refused == 3 && told.Load() == 3 }) // the deadline ends the silent
	c := dial(t, at, Config{Kind: DEALER})
	_ = c.Send([]byte("a"))
	if _, err := c.Recv(); err != nil {
		t.Error("nobody is let in after the silent have gone:", err)
	}
}

func TestDeadlines(t *testing.T) {
	// Half a message ends after Config.Message; nothing at all may last.
	ended := make(chan error, 1)
	_, at := listen(t, "tcp://127.0.0.1:0", Config{Kind: PULL, Message: 50 * time.Millisecond}, func(c *Conn) {
		for {
			if _, err := c.Recv(); err != nil {
				ended <- err
				return
			}
		}
	})
	c := dial(t, at, Config{Kind: PUSH})
	time.Sleep(100 * time.Millisecond)
	if err := c.Send([]byte("a")); err != nil {
		t.Fatal("an idle connection was ended:", err)
	}
	_, _ = c.conn.Write([]byte{0, 9, 'a'})
	var timeout net.Error
	if err := <-ended; !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("half a message ends with %v; want a timeout", err)
	}

	// A peer that does not read ends the writer after Config.Write.
	_, at = listen(t, "tcp://127.0.0.1:0", Config{Kind: PULL}, func(c *Conn) { <-c.Done(); time.Sleep(time.Second) })
	c = dial(t, at, Config{Kind: PUSH, Write: 50 * time.Millisecond})
	body := make([]byte, 1<<20)
	for range 1000 {
		if err := c.Send(body); err != nil {
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("a peer that does not read ends Send with %v", err)
			}
			return
		}
	}
	t.Error("1 GB was sent to a peer that does not read")
}

func TestHeartbeat(t *testing.T) {
	_, at := listen(t, "tcp://127.0.0.1:0", Config{Kind: PUB}, func(c *Conn) { echo(c) })
	const beat = 200 * time.Millisecond // three may be lost: a busy machine takes less
	c := dial(t, at, Config{Kind: SUB, Heartbeat: beat})
	go func() { _, _ = c.Recv() }()
	select {
	case <-c.Done():
		t.Fatal("a peer that answers PING was given up")
	case <-time.After(6 * beat):
	}
	_, at = listen(t, "tcp://127.0.0.1:0", Config{Kind: PUB}, func(c *Conn) { <-c.Done() }) // reads nothing
	c = dial(t, at, Config{Kind: SUB, Heartbeat: beat})
	if _, err := c.Recv(); !errors.Is(err, ErrSilent) {
		t.Errorf("a peer that does not answer PING: %v; want %v", err, ErrSilent)
	}
}

func TestContextEndsAll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	handled := make(chan struct{})
	l, err := Listen(ctx, "tcp://127.0.0.1:0", Config{Kind: PULL}, func(c *Conn) { _, _ = c.Recv(); close(handled) })
	if err != nil {
		t.Fatal(err)
	}
	mine, stop := context.WithCancel(t.Context())
	c, err := Dial(mine, l.Addr().String(), Config{Kind: PUSH})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := c.Recv(); !errors.Is(err, context.Canceled) {
		t.Errorf("Recv returns %v after its context ended", err)
	}
	<-handled
	cancel()
	l.Close()
	if _, err := Dial(t.Context(), l.Addr().String(), Config{Kind: PUSH}); err == nil {
		t.Error("the listener outlives its context")
	}
}
