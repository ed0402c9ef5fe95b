//go:build !unix

package socket

import "syscall"

// ReadNow returns ENOSYS: there is no way to read without waiting.
func ReadNow(uintptr, []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }

// WriteNow returns ENOSYS: there is no way to write without waiting.
func WriteNow(uintptr, []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }
