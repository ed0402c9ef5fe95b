package listen

import (
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSocketOptions: accepted sockets inherit what the listening one was given.
func TestSocketOptions(t *testing.T) {
	l := open(t, Config{WriteTimeout: 7 * time.Second}, nil)
	_, server := pair(t, l)
	raw, err := server.raw.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []struct {
		name          string
		level, option int
		want          int
	}{
		{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 21000},
		{"TCP_NOTSENT_LOWAT", unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes},
		{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
	} {
		raw.Control(func(fd uintptr) {
			if got, err := unix.GetsockoptInt(int(fd), o.level, o.option); got != o.want || err != nil {
				t.Errorf("%s = %d, %v; want %d", o.name, got, err, o.want)
			}
		})
	}
}
