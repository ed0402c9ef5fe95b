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

	conn    *conn
	request *Request // that is to be sent
	pooled  bool     // the connection was idle: it may be dead
	sent    error    // of sending
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

// asks tells whether ask can see by itself that a connection is dead.
func (cn *conn) asks() bool { return cn.raw != nil && cn.net == cn.tcp }

// ask sends a request and waits for the first bytes of the answer. werr is what failed in sending; errStale comes if the
// connection was dead before. It sends inside of the wait for reading: a byte that comes after its start wakes it, so that the
// read that would find nothing, and a lock, are saved, 2 us of a request's 100.
func (cn *conn) ask(r *Request) (block *[blockSize]byte, n int, werr, err error) {
	if !cn.asks() {
		if werr = sendHead(cn, r); werr == nil {
			block, n, err = cn.readHeld()
		}
		return block, n, werr, err
	}
	f := &cn.first
	f.block, f.n, f.err = nil, 0, nil
	f.request, f.sent, f.quiet = r, nil, true
	err = cn.raw.Read(cn.sendFirst)
	block, n, werr = f.block, f.n, f.sent
	f.block, f.request, f.pooled = nil, nil, false
	switch {
	case err != nil || werr != nil:
		return nil, 0, werr, err
	case !f.quiet:
		return nil, 0, nil, errStale
	}
	return block, n, nil, ended(n, f.err)
}

// send is the first call of ask's wait, which has the connection looked at and the request sent, and try after it. A fresh
// connection may have an answer already, from a worker that takes no more of them.
func (f *firstRead) send(fd uintptr) bool {
	r := f.request
	if r == nil {
		return f.try(fd)
	}
	f.request = nil
	if f.pooled {
		if f.ask(fd); !f.quiet {
			return true
		}
	}
	if f.sent = sendHead(f.conn, r); f.sent != nil {
		return true
	}
	return !f.pooled && f.try(fd)
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
