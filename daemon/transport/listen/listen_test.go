package listen

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// patience is for a slow, loaded machine; nothing is expected to need it.
const patience = 20 * time.Second

// open listens on a free port; the test ends with nothing left open.
func open(t testing.TB, c Config, watch func() (watcher, error)) *Listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if watch == nil {
		watch = newWatcher
	}
	l, err := newListener(inner, c, watch)
	if err != nil {
		inner.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		waittest.Until(t, "all connections are closed", func() bool { return l.Stats().Open == 0 })
	})
	return l
}

// pair is one connection: the client's end and ours.
func pair(t testing.TB, l *Listener) (client *net.TCPConn, server *Conn) {
	t.Helper()
	client, err := net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); c.Close() })
	return client, From(c)
}

// counter counts the calls of Gone.
type counter struct{ n atomic.Int32 }

func (c *counter) Gone() { c.n.Add(1) }

func (c *counter) called() bool { return c.n.Load() > 0 }

func TestFrom(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if c := From(a); c != nil {
		t.Errorf("From of a foreign connection = %v, want nil", c)
	}
}

func TestMaxConns(t *testing.T) {
	l := open(t, Config{MaxConns: 2}, nil)
	_, first := pair(t, l)
	pair(t, l)
	accepted := make(chan net.Conn)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	for range 3 {
		over, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer over.Close()
		over.SetReadDeadline(time.Now().Add(patience))
		if _, err := over.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the third connection of two was not closed: %v", err)
		}
	}
	first.Close()
	again, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	c := <-accepted
	if c == nil {
		t.Fatal("no connection was accepted after one had closed")
	}
	defer c.Close()
	if got, want := l.Stats(), (Stats{Open: 2, Accepted: 3, Refused: 3}); got != want {
		t.Errorf("stats = %+v, want %+v", got, want)
	}
}

// stuck is a log that takes a line only once it is freed.
type stuck struct{ begun, free chan struct{} }

func (s *stuck) Write(line []byte) (int, error) {
	close(s.begun) // a second line would be one too many
	<-s.free
	return len(line), nil
}

// TestStuckLog: while the line about refused connections cannot be written, those that are open can close.
func TestStuckLog(t *testing.T) {
	log := &stuck{begun: make(chan struct{}), free: make(chan struct{})}
	l := open(t, Config{MaxConns: 1, Log: slog.New(slog.NewTextHandler(log, nil))}, nil)
	_, first := pair(t, l)
	go func() {
		if c, err := l.Accept(); err == nil { // the second client's, if there is room by then
			c.Close()
		}
	}()
	for range 2 {
		over, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer over.Close()
	}
	<-log.begun
	defer close(log.free)
	closed := make(chan struct{})
	go func() {
		first.Close()
		l.SetMaxConns(2)
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Error("a connection cannot close: it waits for the log")
	}
	if open := l.Stats().Open; open != 0 {
		t.Errorf("%d connections are open; want none", open)
	}
}

// hungry fails to accept left times, as a process without descriptors does.
type hungry struct {
	net.Listener
	left atomic.Int32
}

func (h *hungry) Accept() (net.Conn, error) {
	if h.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return h.Listener.Accept()
}

func TestAcceptOutlivesEMFILE(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hungry{Listener: inner}
	h.left.Store(4)
	var log logtest.Log
	l, err := New(h, Config{Log: textLog(&log)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	began := time.Now()
	pair(t, l)
	if took := time.Since(began); took < 75*time.Millisecond { // 5 + 10 + 20 + 40
		t.Errorf("four failures took %v: a busy loop", took)
	}

	h.left.Store(1 << 30)
	ended := make(chan error)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	waittest.Until(t, "accept fails again", func() bool { return h.left.Load() < 1<<30-2 })
	l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "use of closed network connection") {
		t.Errorf("Accept of a closed Listener: %v; fasthttp knows a clean end by net.ErrClosed's text", err)
	}
}

func TestCloseLeavesConnectionsOpen(t *testing.T) {
	l := open(t, Config{}, nil)
	client, server := pair(t, l)
	l.Close()
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close = %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close = %v", err)
	}
	var g counter
	server.Watch(&g)
	client.Close()
	waittest.Until(t, "a client's leaving is noticed while the Listener drains", g.called)
}

func TestAbortResets(t *testing.T) {
	l := open(t, Config{}, nil)
	for name, end := range map[string]struct {
		close func(*Conn)
		want  error
	}{
		"close": {func(c *Conn) { c.Close() }, io.EOF},
		"abort": {(*Conn).Abort, syscall.ECONNRESET},
		"both":  {func(c *Conn) { c.Abort(); c.Close(); c.Abort() }, syscall.ECONNRESET},
	} {
		client, server := pair(t, l)
		end.close(server)
		client.SetReadDeadline(time.Now().Add(patience))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, end.want) {
			t.Errorf("%s: the client saw %v, want %v", name, err, end.want)
		}
	}
	if open := l.Stats().Open; open != 0 {
		t.Errorf("%d connections count as open", open)
	}
}

// behind makes a pair whose client has read nothing of what was written to it.
func behind(t *testing.T) (client *net.TCPConn, server *Conn, size int64) {
	t.Helper()
	client, server = pair(t, open(t, Config{}, nil))
	client.SetReadBuffer(4 << 10)
	size = 64 << 10 // less than the kernel takes at once
	if _, err := server.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	return client, server, size
}

// TestAbortOnceSentLosesNothing: a reader that is behind gets all that was written before the reset.
func TestAbortOnceSentLosesNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what is unsent is known on Linux only")
	}
	client, server, size := behind(t)
	go server.AbortOnceSent()
	time.Sleep(100 * time.Millisecond)
	client.SetReadDeadline(time.Now().Add(patience))
	n, err := io.Copy(io.Discard, client)
	if n != size || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client got %d bytes of %d and %v, want a reset", n, size, err)
	}
}

// TestAbortOnceSentEndsInAReset: the process may end while the connection waits, which closes the descriptor.
func TestAbortOnceSentEndsInAReset(t *testing.T) {
	client, server, _ := behind(t)
	go server.AbortOnceSent()
	time.Sleep(100 * time.Millisecond)
	server.raw.Close()
	client.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.Copy(io.Discard, client); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client got %d bytes and %v, want a reset", n, err)
	}
}

// TestAbortOnceSentAfterTheClient: nobody waits for a client that has reset the connection.
func TestAbortOnceSentAfterTheClient(t *testing.T) {
	client, server, _ := behind(t)
	client.SetLinger(0)
	client.Close()
	began := time.Now()
	server.AbortOnceSent()
	if took := time.Since(began); took > lingerTime/2 {
		t.Errorf("it took %v", took)
	}
}

func TestNothingIsLeft(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc")
		}
		return len(entries)
	}
	descriptors, goroutines := open(), runtime.NumGoroutine()
	for _, watch := range watchers {
		inner, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l, err := newListener(inner, Config{}, watch)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			client, server := pair(t, l)
			gen := server.Watch(new(counter))
			switch i % 3 {
			case 0:
				client.Close()
				server.Close()
			case 1:
				server.Abort()
				client.Close()
			default:
				server.Unwatch(gen)
				server.Close()
				client.Close()
			}
		}
		l.Close()
	}
	waittest.Until(t, "descriptors and goroutines are back where they were", func() bool {
		return open() <= descriptors && runtime.NumGoroutine() <= goroutines
	})
}
