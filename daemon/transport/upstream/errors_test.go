package upstream

import (
	"os"
	"syscall"
)

var (
	errTimeout = os.ErrDeadlineExceeded
	errReset   = syscall.ECONNRESET
)
