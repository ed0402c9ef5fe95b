package front

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// listening returns a listener whose connections may be looked at.
func listening(t *testing.T) *listen.Listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := listen.New(inner, listen.Config{Parked: func(*listen.Conn) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// connected returns both ends of a connection.
func connected(t *testing.T, l *listen.Listener) (client net.Conn, ours *listen.Conn) {
	t.Helper()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ours = listen.From(accepted)
	t.Cleanup(func() { client.Close(); ours.Close() })
	return client, ours
}

// TestAwaitRequest: a request is served by fasthttp once it comes, with all of its bytes. Nothing is left of a client
// that leaves, of one that is silent for too long, or of one that a drain finds.
func TestAwaitRequest(t *testing.T) {
	l := listening(t)
	const text = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
	served := make(chan string, 10)
	h := &handler{serveConn: func(c net.Conn) error {
		b := make([]byte, len(text))
		_, err := io.ReadFull(c, b)
		served <- string(b)
		return errors.Join(err, c.Close())
	}}
	f := func(what string, idle time.Duration, come func(client net.Conn)) {
		t.Helper()
		client, ours := connected(t, l)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.awaitRequest(ours, idle)
		}()
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if _, waits := h.traffic.parked.Load(ours); waits || idle < time.Second {
				break
			}
		}
		come(client)
		_ = client.SetReadDeadline(time.Now().Add(30 * time.Second))
		if n, err := client.Read(make([]byte, 1)); n != 0 || err != io.EOF && !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: the client reads %d bytes, error %v; want the end", what, n, err)
		}
		<-ended
		if _, waits := h.traffic.parked.Load(ours); waits {
			t.Errorf("%s: the connection still waits", what)
		}
	}
	f("one that asks", time.Minute, func(client net.Conn) { _, _ = io.WriteString(client, text) })
	if got := <-served; got != text {
		t.Errorf("%q is served", got)
	}
	f("one that leaves", time.Minute, func(client net.Conn) { client.Close() })
	f("one that is silent", 10*time.Millisecond, func(net.Conn) {})
	f("one that a drain finds", time.Minute, func(net.Conn) { h.traffic.beginDrain() })
	if n := l.Stats().Open; n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

// TestConnectionPanic: a panic on a connection that fasthttp has been given ends that connection, and is logged.
func TestConnectionPanic(t *testing.T) {
	client, ours := connected(t, listening(t))
	var log strings.Builder
	h := &handler{log: slog.New(slog.NewTextHandler(&log, nil)), serveConn: func(net.Conn) error { panic("in fasthttp") }}
	_, _ = io.WriteString(client, "G")
	h.awaitRequest(ours, time.Minute)
	if !strings.Contains(log.String(), "BUG: a connection made the daemon panic") {
		t.Errorf("the log says %q", log.String())
	}
	_ = client.SetReadDeadline(time.Now().Add(30 * time.Second))
	if n, err := client.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("the client reads %d bytes, error %v; want a reset", n, err)
	}
	if _, waits := h.traffic.parked.Load(ours); waits {
		t.Error("the connection still waits")
	}
}
