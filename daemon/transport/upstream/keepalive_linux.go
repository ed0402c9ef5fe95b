package upstream

import "syscall"

// userTimeout is TCP_USER_TIMEOUT of linux/tcp.h, on every processor. Package syscall lacks it.
const userTimeout = 18

// boundUnacknowledged breaks a connection on which the worker's host has acknowledged nothing for as long: the kernel
// asks no question while it repeats what it has sent, and repeats that for a quarter of an hour.
func boundUnacknowledged(_, _ string, c syscall.RawConn) (err error) {
	fault := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(vanished.Milliseconds()))
	})
	if fault != nil {
		return fault
	}
	return err
}
