//go:build unix && (!linux || race)

package socket

import (
	"errors"
	"syscall"
)

// ReadNow reads from the descriptor of a socket without waiting. Its errno is EAGAIN if there is nothing, and never
// EINTR; 0 bytes without one are the end.
func ReadNow(fd uintptr, b []byte) (int, syscall.Errno) { return now(syscall.Read, fd, b) }

// WriteNow writes to the descriptor of a socket what it takes without waiting, and returns how many bytes it took. Its
// errno is EAGAIN if that is nothing, and never EINTR. b is not empty.
func WriteNow(fd uintptr, b []byte) (int, syscall.Errno) { return now(syscall.Write, fd, b) }

func now(call func(int, []byte) (int, error), fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, err := call(int(fd), b)
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
