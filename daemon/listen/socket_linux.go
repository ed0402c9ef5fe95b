package listen

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unsentBytes bounds what the kernel holds of a stream beyond the client's window. A blocked writer goes on when half of it has
// left. Twice the 64 KB that a large answer is written in.
const unsentBytes = 128 << 10

// tune sets what accepted sockets inherit; doc.go says why.
func tune(inner net.Listener, timeout time.Duration) error {
	sc, ok := inner.(syscall.Conn)
	if _, tcp := inner.(*net.TCPListener); !ok || !tcp {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = errors.Join(
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(timeout.Milliseconds())),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes))
	})
	return errors.Join(err, failed)
}
