//go:build unix && (!linux || race)

package socket

import (
	"errors"
	"syscall"
)

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
