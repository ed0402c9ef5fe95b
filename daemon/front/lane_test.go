package front

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/listen"
)

// TestLanePanic: what breaks a lane ends its connection, and is told.
func TestLanePanic(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := listen.New(inner, listen.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	r := &reception{log: slog.New(slog.NewTextHandler(&log, nil)), current: func() *Epoch { panic("no epoch") }}
	r.enterLane(listen.From(accepted), true)
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
