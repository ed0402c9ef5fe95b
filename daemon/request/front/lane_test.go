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

// TestLongSilence: after half a minute nobody waits for a request, and it is served all the same. Nothing is left of a
// client that leaves, of one that is silent for too long, or of one that a drain finds.
func TestLongSilence(t *testing.T) {
	l := listening(t)
	const request = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n" // not for a lane
	served := make(chan string, 10)
	r := &reception{maxHeader: 1 << 10, serveConn: func(c net.Conn) error {
		b := make([]byte, len(request))
		_, err := io.ReadFull(c, b)
		served <- string(b)
		return errors.Join(err, c.Close())
	}}
	f := func(what string, come func(client net.Conn, waits *lane)) {
		t.Helper()
		client, ours := connected(t, l)
		waits := &lane{reception: r, most: listen.Long, waitBy: time.Now().Add(time.Minute)}
		waits.client = ours
		r.traffic.man(&waits.post)
		if what == "one that is silent" {
			waits.waitBy = time.Now().Add(10 * time.Millisecond)
		}
		waits.waitOn()
		if waits.most != listen.Endless {
			t.Errorf("%s: it waits for %d", what, waits.most)
		}
		come(client, waits)
		_ = client.SetReadDeadline(time.Now().Add(30 * time.Second))
		if n, err := client.Read(make([]byte, 1)); n != 0 || err != io.EOF && !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: the client reads %d bytes, error %v; want the end", what, n, err)
		}
		for end := time.Now().Add(30 * time.Second); waits.state.Load() != postLeft && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if _, there := r.traffic.lanes.Load(&waits.post); there && waits.state.Load() != postLeft {
			t.Errorf("%s: the lane is still there", what)
		}
	}
	f("one that asks", func(client net.Conn, _ *lane) { _, _ = io.WriteString(client, request) })
	if got := <-served; got != request {
		t.Errorf("%q is served", got)
	}
	f("one that leaves", func(client net.Conn, _ *lane) { client.Close() })
	f("one that is silent", func(net.Conn, *lane) {})
	f("one that a drain finds", func(net.Conn, *lane) { r.traffic.beginDrain() })
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		left := 0
		r.traffic.lanes.Range(func(any, any) bool { left++; return true })
		if left == 0 && l.Stats().Open == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d lanes and %d connections are left", left, l.Stats().Open)
		}
	}
}

// TestLanePanic: a panic in a lane ends its connection, and is logged.
func TestLanePanic(t *testing.T) {
	client, ours := connected(t, listening(t))
	var log strings.Builder
	r := &reception{log: slog.New(slog.NewTextHandler(&log, nil)), backend: backend{}}
	r.enterLane(ours, true)
	if !strings.Contains(log.String(), "BUG: a connection made the daemon panic") {
		t.Errorf("the log says %q", log.String())
	}
	_ = client.SetReadDeadline(time.Now().Add(30 * time.Second))
	if n, err := client.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("the client reads %d bytes, error %v; want a reset", n, err)
	}
	if r.traffic.served() {
		t.Error("a drain would wait for the connection")
	}
}
