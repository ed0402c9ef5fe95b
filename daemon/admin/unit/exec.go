package unit

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// closeOnExec keeps descriptors out of the processes that this one starts.
func closeOnExec(files ...*os.File) {
	for _, f := range files {
		syscall.CloseOnExec(int(f.Fd()))
	}
}

// second returns a second descriptor of a listener's socket. Its own File would not do: when a process is started with
// that, the socket becomes blocking for this process too, and its next accept cannot be ended.
func second(l net.Listener) (*os.File, error) {
	s, ok := l.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("unit: a listener of type %T has no descriptor", l)
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("unit: %w", err)
	}
	var f *os.File
	cerr := raw.Control(func(fd uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		var dup int
		dup, err = syscall.Dup(int(fd))
		if err == nil {
			syscall.CloseOnExec(dup)
			f = os.NewFile(uintptr(dup), "socket")
		}
	})
	if err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("unit: a socket cannot be handed over: %w", err)
	}
	return f, nil
}
