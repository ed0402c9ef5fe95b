package listen

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// unsentBytes bounds what the kernel holds of a stream beyond the client's window. A blocked writer goes on when half
// of it has left. Twice the 64 KB that a large answer is written in.
const unsentBytes = 128 << 10

// tune sets the options that doc.go gives the reasons for. It is done for each connection: accepted sockets inherit
// from a listening one, but not from one of multipath TCP, which is what net.Listen makes.
func tune(raw net.Conn, writeTimeout time.Duration) error {
	tcp, ok := raw.(*net.TCPConn)
	if !ok {
		return nil
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = rc.Control(func(fd uintptr) {
		failed = errors.Join(
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(3*writeTimeout.Milliseconds())),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes))
	})
	return errors.Join(err, failed)
}

// unsent returns how many written bytes the client's kernel does not have yet; 0 if the connection is closed, or reset
// by the client.
func unsent(raw net.Conn) (n int) {
	tcp, ok := raw.(*net.TCPConn)
	if !ok {
		return 0
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	err = rc.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil && info.State != unix.BPF_TCP_CLOSE { // after a reset the kernel goes on counting what it had
			n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		}
	})
	if err != nil {
		return 0
	}
	return n
}
