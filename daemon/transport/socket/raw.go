//go:build linux && !race

package socket

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// maxCall bounds the bytes of a system call that the scheduler does not know of. 128 KiB are copied in some 20 us, for
// which a stop of the world may have to wait.
const maxCall = 128 << 10

// Conn is a TCP connection. One goroutine reads at a time and one writes, which may be two.
type Conn struct {
	*net.TCPConn
	raw syscall.RawConn

	tryRead  func(fd uintptr) bool // c.readSome, bound once
	tryWrite func(fd uintptr) bool // c.writeSome, bound once

	room  Room  // of the read that runs
	given Given // the room of Read
	n     int
	errno syscall.Errno

	from     [2]syscall.Iovec // what is left of the write that runs
	sent     int
	outErrno syscall.Errno
}

// New takes conn over.
func New(conn *net.TCPConn) (*Conn, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &Conn{TCPConn: conn, raw: raw}
	c.tryRead = c.readSome
	c.tryWrite = c.writeSome
	return c, nil
}

// Raw returns the connection's descriptor, with its deadlines and waits.
func (c *Conn) Raw() syscall.RawConn { return c.raw }

// Read reads what is there, or waits for something.
func (c *Conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	c.given = b
	n, err := c.ReadRoom(&c.given)
	c.given = nil
	return n, err
}

// ReadRoom is Read into the memory of a room, of which it holds none while it waits.
func (c *Conn) ReadRoom(room Room) (int, error) {
	c.room = room
	err := c.raw.Read(c.tryRead)
	c.room = nil
	switch {
	case err != nil:
		return 0, err
	case c.errno != 0:
		return 0, c.failed("read", c.errno)
	case c.n == 0:
		return 0, io.EOF
	}
	return c.n, nil
}

func (c *Conn) readSome(fd uintptr) (done bool) {
	c.n, c.errno = ReadNow(fd, c.room.Take())
	if c.errno != syscall.EAGAIN {
		return true
	}
	c.room.Drop()
	return false
}

// Write writes all of b.
func (c *Conn) Write(b []byte) (int, error) { return c.WriteBoth(b, nil) }

// WriteBoth writes all of both, with one system call if they fit. It returns how many bytes of both together were
// written.
func (c *Conn) WriteBoth(first, second []byte) (int, error) {
	c.sent = 0
	c.from[0] = vector(first)
	c.from[1] = vector(second)
	err := c.raw.Write(c.tryWrite)
	c.from = [2]syscall.Iovec{}
	if err == nil && c.outErrno != 0 {
		err = c.failed("write", c.outErrno)
	}
	return c.sent, err
}

// vector names b to the kernel.
func vector(b []byte) (v syscall.Iovec) {
	v.Base = unsafe.SliceData(b)
	v.SetLen(len(b))
	return v
}

// writeSome writes until all is written, or the kernel takes no more.
func (c *Conn) writeSome(fd uintptr) (done bool) {
	for c.from[0].Len+c.from[1].Len > 0 {
		n, errno := c.writeNow(fd)
		switch errno {
		case 0:
			c.sent += n
			c.advance(uint64(n))
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			c.outErrno = errno
			return true
		}
	}
	c.outErrno = 0
	return true
}

// writeNow makes one system call. A call of more than maxCall bytes is made as package syscall does, so that the
// scheduler and a stop of the world go on without it. That costs little compared with the copy, and less than a second
// call, which wakes the reader once more (256 KB in pieces of maxCall: 10 % of a request's CPU time).
func (c *Conn) writeNow(fd uintptr) (int, syscall.Errno) {
	if c.from[0].Len+c.from[1].Len > maxCall {
		n, _, errno := syscall.Syscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&c.from)), 2)
		return int(n), errno
	}
	first, second := &c.from[0], &c.from[1]
	if first.Len > 0 && second.Len > 0 {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&c.from)), 2)
		return int(n), errno
	}
	if first.Len == 0 {
		first = second
	}
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(first.Base)), uintptr(first.Len))
	return int(n), errno
}

// advance takes off what was written.
func (c *Conn) advance(n uint64) {
	for i := range c.from {
		v := &c.from[i]
		from := min(n, uint64(v.Len))
		n -= from
		rest := unsafe.Slice(v.Base, v.Len)[from:]
		*v = vector(rest)
	}
}

// failed returns the error that package net makes of errno.
func (c *Conn) failed(op string, errno syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(),
		Err: os.NewSyscallError(op, errno)}
}

// ReadNow reads from the descriptor of a socket without waiting. Its errno is EAGAIN if there is nothing, and never
// EINTR; 0 bytes without one are the end. In pieces of maxCall it announced new room to the sender once more: 2 % of
// the CPU time of a request of 256 KB.
func ReadNow(fd uintptr, b []byte) (int, syscall.Errno) { return now(syscall.SYS_READ, fd, b) }

// now makes a system call that moves bytes from or to b, again if a signal interrupts it.
func now(call, fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, errno := once(call, fd, b)
		switch errno {
		case 0:
			return n, 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// once makes the call. One that may move more than maxCall bytes is made so that the scheduler and a stop of the world
// go on without it.
func once(call, fd uintptr, b []byte) (int, syscall.Errno) {
	at := unsafe.SliceData(b)
	if len(b) > maxCall {
		n, _, errno := syscall.Syscall(call, fd, uintptr(unsafe.Pointer(at)), uintptr(len(b)))
		return int(n), errno
	}
	n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(at)), uintptr(len(b)))
	return int(n), errno
}
