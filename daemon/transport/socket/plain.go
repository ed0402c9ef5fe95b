//go:build !linux || race

package socket

import (
	"errors"
	"net"
	"syscall"
)

// Conn is a TCP connection. One goroutine reads at a time and one writes, which may be two.
type Conn struct {
	*net.TCPConn
	raw syscall.RawConn

	both [2][]byte // of the write that runs
	bufs net.Buffers
}

// New takes conn over.
func New(conn *net.TCPConn) (*Conn, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Conn{TCPConn: conn, raw: raw}, nil
}

// Raw returns the connection's descriptor, with its deadlines and waits.
func (c *Conn) Raw() syscall.RawConn { return c.raw }

// ReadRoom is Read into the memory of a room. It holds that while it waits.
func (c *Conn) ReadRoom(room Room) (int, error) { return c.Read(room.Take()) }

// WriteBoth writes all of both, with one system call if they fit. It returns how many bytes of both together were
// written.
func (c *Conn) WriteBoth(first, second []byte) (int, error) {
	if len(second) == 0 {
		return c.Write(first)
	}
	c.both = [2][]byte{first, second}
	c.bufs = c.both[:]
	n, err := c.bufs.WriteTo(c.TCPConn)
	c.both = [2][]byte{}
	c.bufs = nil
	return int(n), err
}

// ReadNow reads from the descriptor of a socket without waiting. Its errno is EAGAIN if there is nothing, and never
// EINTR; 0 bytes without one are the end.
func ReadNow(fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, err := syscall.Read(int(fd), b)
		if err == nil {
			return n, 0
		}
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = syscall.EIO
		}
		if errno != syscall.EINTR {
			return 0, errno
		}
	}
}
