package upstream

import (
	"context"
	"net"
	"syscall"
	"testing"
)

// TestVanishedHosts: the kernel's options by which a connection breaks whose host is gone, as they stand on a
// connection that was dialed. Nothing on loopback vanishes, so they are read back.
func TestVanishedHosts(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Logf("%s: %v", addr, err)
			continue
		}
		defer l.Close()
		c, err := New(Config{URL: "http://" + l.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		cn, err := c.pool.dial(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer cn.close()
		f := func(name string, level, option, want int) {
			t.Helper()
			err := cn.tcp.Raw().Control(func(fd uintptr) {
				if got, err := syscall.GetsockoptInt(int(fd), level, option); err != nil || got != want {
					t.Errorf("%s: %s is %d, %v; want %d", addr, name, got, err, want)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		f("SO_KEEPALIVE", syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1)
		f("TCP_KEEPIDLE", syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 15)
		f("TCP_KEEPINTVL", syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 10)
		f("TCP_KEEPCNT", syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 3)
		f("TCP_USER_TIMEOUT", syscall.IPPROTO_TCP, userTimeout, 45000)
	}
}
