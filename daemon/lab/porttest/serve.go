package porttest

import (
	"net"
	"testing"
)

// Serve calls serve with each connection to a port of 127.0.0.1, in a goroutine each, and returns its address. The
// port closes with the test; serve closes its connection.
func Serve(t testing.TB, serve func(c *net.TCPConn)) (addr string) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}
