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
	"slices"
	"strconv"
	"sync"
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
			last = give(t, first, n)
		}
		if last == nil {
			return first
		}
	}
	t.Fatalf("porttest: no %d free ports in a row at %q: %v", n, hosts, last)
	return 0
}

// given are the ports that tests of this process have: a test that runs at the same time gets none of these, even if
// the port is free at the moment.
var given struct {
	sync.Mutex
	ports [65536]bool
}

// give returns an error if one of the ports is another test's. They are taken back at the test's end.
func give(t testing.TB, first, n int) error {
	given.Lock()
	defer given.Unlock()
	row := given.ports[first : first+n]
	if slices.Contains(row, true) {
		return fmt.Errorf("another test has one of %d to %d", first, first+n-1)
	}
	for i := range row {
		row[i] = true
	}
	t.Cleanup(func() {
		given.Lock()
		defer given.Unlock()
		clear(row)
	})
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
