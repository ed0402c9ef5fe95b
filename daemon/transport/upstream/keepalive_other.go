//go:build !linux

package upstream

import "syscall"

// boundUnacknowledged does nothing: the system has no such bound.
func boundUnacknowledged(_, _ string, _ syscall.RawConn) error { return nil }
