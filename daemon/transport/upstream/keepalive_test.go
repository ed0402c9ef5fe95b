package upstream

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// TestVanishedIsNoTimeout: a connection that the kernel gave up is broken. A passed deadline is not: the worker may
// still be at work.
func TestVanishedIsNoTimeout(t *testing.T) {
	read := func(err error) error {
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", err)}
	}
	f := func(err error, timeout, gone bool) {
		t.Helper()
		if got := isTimeout(err); got != timeout {
			t.Errorf("%v: a timeout: %v; want %v", err, got, timeout)
		}
		var e net.Error
		for _, got := range []error{named(err), early(err)} {
			if errors.Is(got, errVanished) != gone || gone && errors.As(got, &e) {
				t.Errorf("%v: named %v; want a vanished host: %v", err, got, gone)
			}
		}
	}
	f(read(syscall.ETIMEDOUT), false, true)
	f(syscall.ETIMEDOUT, false, true)
	f(read(syscall.ECONNRESET), false, false)
	f(read(syscall.EHOSTUNREACH), false, false)
	f(os.ErrDeadlineExceeded, true, false)
	f(&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, true, false)
	f(io.ErrUnexpectedEOF, false, false)
}
