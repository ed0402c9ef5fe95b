//go:build !unix

package socket

import "syscall"

// ReadNow has no way to read without waiting.
func ReadNow(uintptr, []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }

// WriteNow has no way to write without waiting.
func WriteNow(uintptr, []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }
