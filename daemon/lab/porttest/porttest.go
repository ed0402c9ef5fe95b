// Package porttest finds ports for tests that bind one again, or need its neighbours or the same one at another
// address.
//
// For port 0 the system gives one of the range of outgoing connections. This test, and every other that runs meanwhile,
// connects from that range, so any connection may take the port once it is closed, and a neighbouring port at any time.
// The ports of this package lie below that range.
package porttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"testing"
)

// Row returns the first of n ports in a row that are free at all of the hosts. Default host 127.0.0.1. It fails the
// test when there are none.
func Row(t testing.TB, n int, hosts ...string) int {
	t.Helper()
	if len(hosts) == 0 {
		hosts = []string{"127.0.0.1"}
	}
	var last error
	for range 100 {
		first := 20_000 + rand.IntN(10_000)
		last = free(first, n, hosts)
		if last == nil {
			last = hold(t, first, n)
		}
		if last == nil {
			return first
		}
	}
	t.Fatalf("porttest: no %d free ports in a row at %q: %v", n, hosts, last)
	return 0
}

// hold returns an error if another test has one of the ports, of this process or of one that runs beside it: such a
// test may have closed a port for a moment, or not bound it yet. A port is held by a socket of its name, which ends
// with the test, and with its process at the latest. Other systems than Linux have no such names: they hold none.
func hold(t testing.TB, first, n int) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	held := make([]net.PacketConn, n)
	release := func() {
		for _, c := range held {
			if c != nil {
				c.Close()
			}
		}
	}
	for i := range held {
		c, err := net.ListenPacket("unixgram", fmt.Sprintf("@warmpath-porttest-%d", first+i))
		if err != nil {
			release()
			return fmt.Errorf("another test has port %d: %w", first+i, err)
		}
		held[i] = c
	}
	t.Cleanup(release)
	return nil
}

// free returns an error if one of the ports is not.
func free(first, n int, hosts []string) error {
	for port := first; port < first+n; port++ {
		for _, host := range hosts {
			l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
			if err != nil {
				return err
			}
			l.Close()
		}
	}
	return nil
}

// Address returns a free host:port of 127.0.0.1, which may be bound, closed and bound again.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Row(t, 1)))
}
