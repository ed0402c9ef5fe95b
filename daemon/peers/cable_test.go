package peers

import (
	"context"
	"net"
	"testing"
	"time"
)

// TestCableThatComesLate: dialling Redis takes longer than a cable waits. What comes too late is closed, and nobody
// reads the connection while the dialler writes it: the race detector sees that.
func TestCableThatComesLate(t *testing.T) {
	t.Parallel()
	l, err := newLink("redis://127.0.0.1:1", nil, "w/", 1)
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	l.opt.DialerRetries = 1
	l.opt.Dialer = func(context.Context, string, string) (net.Conn, error) {
		time.Sleep(callTimeout * 3 / 2) // a channel would put the two in order
		return near, nil
	}
	if c, err := l.cable(t.Context()); c != nil || err == nil {
		t.Errorf("%v, %v; want no cable", c, err)
	}
	if n, err := far.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes were written; want the connection closed", n)
	}
}
