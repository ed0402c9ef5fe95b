//go:build unix

package upstream

import "syscall"

// firstRead is the first read of an answer. The wait before it may be a prefill of minutes, so its buffer is taken only
// once there is something to read.
type firstRead struct {
	block *[blockSize]byte
	n     int
	err   error
	one   [1]byte
	quiet bool
}

// try reads without waiting; false = wait until there is something.
func (f *firstRead) try(fd uintptr) bool {
	f.block = blocks.Get().(*[blockSize]byte)
	for {
		f.n, f.err = syscall.Read(int(fd), f.block[:])
		if f.err != syscall.EINTR {
			break
		}
	}
	if f.err == nil && f.n > 0 {
		return true
	}
	blocks.Put(f.block)
	f.block, f.n = nil, max(f.n, 0)
	return f.err != syscall.EAGAIN
}

// readBlock waits for the first bytes of an answer.
func (cn *conn) readBlock() (*[blockSize]byte, int, error) {
	if cn.raw == nil || cn.net != cn.tcp {
		return cn.readHeld()
	}
	f := &cn.first
	f.block, f.n, f.err = nil, 0, nil
	if err := cn.raw.Read(cn.readFirst); err != nil {
		return nil, 0, err
	}
	block, n, err := f.block, f.n, f.err
	f.block = nil
	return block, n, ended(n, err)
}

// alive tells whether an unused connection may carry a request: it is open, and nothing has come on it that nobody asked
// for. It asks the system by a read of a byte that does not wait: a connection that has a byte is thrown away anyway.
func (cn *conn) alive() bool {
	if cn.raw == nil {
		return true
	}
	return cn.raw.Read(cn.probe) == nil && cn.first.quiet
}

// ask is the read of alive.
func (f *firstRead) ask(fd uintptr) bool {
	_, err := syscall.Read(int(fd), f.one[:])
	f.quiet = err == syscall.EAGAIN || err == syscall.EINTR
	return true
}
