package upstream

import (
	"syscall"

	"github.com/warmpath/warmpath/daemon/transport/socket"
)

// firstRead is the first read of an answer, on the raw descriptor. The wait before it may be a prefill of minutes, so
// it takes its buffer only once there is something to read. It also finds out whether an unused connection is dead.
type firstRead struct {
	raw     syscall.RawConn
	plain   bool // what is read from raw is what the worker wrote: no TLS
	suspect bool // the connection was idle: it may be dead
	to      sender

	tryFunc   func(fd uintptr) bool // try, bound once
	sendFunc  func(fd uintptr) bool // send, bound once
	probeFunc func(fd uintptr) bool // probe, bound once

	request *Request // to be sent by the wait that runs
	sendErr error    // of sending it
	got     start
	err     error // of reading
	one     [1]byte
	quiet   bool // the last probe found an open connection on which nothing has come
}

// sender sends a request's head and Body.
type sender interface{ sendHead(*Request) error }

func (f *firstRead) init(tcp *socket.Conn, plain bool, to sender) {
	f.raw = tcp.Raw()
	f.plain = plain
	f.to = to
	f.tryFunc = f.try
	f.sendFunc = f.send
	f.probeFunc = f.probe
}

// usable reports whether read and ask work on this connection.
func (f *firstRead) usable() bool { return f.plain }

// read waits for the first bytes of an answer.
func (f *firstRead) read() (start, error) {
	f.got = start{}
	f.err = nil
	if err := f.raw.Read(f.tryFunc); err != nil {
		return start{}, err
	}
	return f.result()
}

// result returns what try has read, once.
func (f *firstRead) result() (start, error) {
	got := f.got
	f.got = start{}
	return got, ended(got.n, f.err)
}

// try reads without waiting. It returns false to wait until there is something.
func (f *firstRead) try(fd uintptr) bool {
	block := blocks.Get().(*[blockSize]byte)
	n, errno := socket.ReadNow(fd, block[:])
	f.err = nil
	if n > 0 {
		f.got = start{block, n}
		return true
	}
	blocks.Put(block)
	if errno != 0 {
		f.err = errno
	}
	return errno != syscall.EAGAIN
}

// ask sends a request and waits for the first bytes of the answer, as conn.ask does. It sends inside of the wait for
// reading: a byte that comes after its start wakes it, so a read that would find nothing, and a lock, are saved.
func (f *firstRead) ask(r *Request) (start, error) {
	f.got = start{}
	f.err = nil
	f.sendErr = nil
	f.request = r
	f.quiet = true
	err := f.raw.Read(f.sendFunc)
	f.request = nil
	f.suspect = false
	switch {
	case f.sendErr != nil:
		return start{}, &sendFailure{f.sendErr}
	case err != nil:
		return start{}, err
	case !f.quiet:
		return start{}, errStale
	}
	return f.result()
}

// send is called by the wait of ask. Its first call probes a suspect connection and sends the request. The others, and
// the first on a fresh connection, read: a worker that takes no more connections may have answered already.
func (f *firstRead) send(fd uintptr) bool {
	r := f.request
	if r == nil {
		return f.try(fd)
	}
	f.request = nil
	if f.suspect {
		f.probe(fd)
		if !f.quiet {
			return true
		}
	}
	f.sendErr = f.to.sendHead(r)
	if f.sendErr != nil {
		return true
	}
	return !f.suspect && f.try(fd)
}

// alive reports whether an unused connection may carry a request: it is open, and no bytes have come on it that answer
// no request. If there is no descriptor to read from, it returns true, and the next request finds out.
func (f *firstRead) alive() bool {
	return f.raw == nil || f.raw.Read(f.probeFunc) == nil && f.quiet
}

// probe reads a byte without waiting. A connection that has one is thrown away anyway.
func (f *firstRead) probe(fd uintptr) bool {
	_, errno := socket.ReadNow(fd, f.one[:])
	f.quiet = errno == syscall.EAGAIN
	return true
}
