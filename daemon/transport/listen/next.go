package listen

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/daemon/transport/socket"
)

// ErrParked is Next's error after a wait for as long as Silence sets.
var ErrParked = errors.New("listen: the wait goes on without a request")

// pages gives a wait memory to read into once there is something to read. A Conn has it from the first call of Next on.
type pages struct {
	raw   syscall.RawConn
	try   func(fd uintptr) (done bool) // p.tryRead, bound once
	pool  *sync.Pool
	page  *[]byte
	n     int
	errno syscall.Errno
}

// tryRead reads into memory of the pool. It gives that back while there is nothing.
func (p *pages) tryRead(fd uintptr) (done bool) {
	p.page = p.pool.Get().(*[]byte)
	p.n, p.errno = socket.ReadNow(fd, *p.page)
	if p.errno != 0 || p.n == 0 {
		p.pool.Put(p.page)
		p.page = nil
	}
	return p.errno != syscall.EAGAIN
}

// look reads what is there, whatever the deadline. A close with a request unread would be a reset: its client could not
// tell whether the request was served. A wait in Await ends up to a second after its time, in which one may have come.
func (p *pages) look() { _ = p.raw.Control(func(fd uintptr) { p.try(fd) }) }

// Silence is how long a wait lasts before it goes on with less memory, in looks at all connections: one each second.
type Silence int64

// The silences.
const (
	Endless Silence = 0  // Next waits on
	Short   Silence = 1  // a client between two questions, not one under load
	Long    Silence = 30 // one that may never ask again
)

// Next waits for the beginning of a request, and reads it into memory of the pool, of *[]byte: a connection holds none
// while it waits. The caller judges the request's head, see Unread. Next returns ErrParked after a silence of most, up
// to a second later: the caller may wait on in a goroutine that holds less, or in Await. What has come is returned also
// after the deadline. The connection is one without TLS.
func (c *Conn) Next(pool *sync.Pool, most Silence) (page *[]byte, n int, err error) {
	if c.pages == nil {
		tcp, ok := c.socket.(*socket.Conn)
		if !ok {
			return c.nextOther(pool)
		}
		c.pages = &pages{raw: tcp.Raw()}
		c.pages.try = c.pages.tryRead
	}
	since := int64(0)
	if most != Endless {
		since = c.census.parking.now.Load()
	}
	if since != 0 { // parking looks at the waits
		since += int64(most - Short)
	}
	if err := c.readBy.begin(c.raw, since); err != nil {
		return nil, 0, err
	}
	p := c.pages
	p.pool = pool
	err = p.raw.Read(p.try)
	dismissed := c.readBy.end()
	late := errors.Is(err, os.ErrDeadlineExceeded)
	if late && !dismissed {
		p.look()
	}
	page = p.page
	p.page = nil
	c.head.over = true // no other code follows its bytes
	switch {
	case page != nil:
		return page, p.n, nil
	case dismissed && late:
		return nil, 0, ErrParked
	case err != nil:
		return nil, 0, err
	case p.errno != 0:
		return nil, 0, &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: p.errno}
	}
	return nil, 0, io.EOF
}

// Await calls then, on a goroutine of its own: once there is something to read (data or the client's end), once the
// connection is closed, or once until has passed, up to a second later. No goroutine waits meanwhile. Where the system
// cannot do that, Await calls then at once, to wait in Next.
func (c *Conn) Await(until time.Time, then func()) {
	c.presence.await(until, func() {
		_ = c.census.watcher.await(&c.presence, c.raw, false) // of a closed one: Next returns the error
		then()
	})
	if c.census.watcher.await(&c.presence, c.raw, true) != nil {
		c.presence.stir()
	}
}

// nextOther is Next for a connection that is not TCP.
func (c *Conn) nextOther(pool *sync.Pool) (*[]byte, int, error) {
	page := pool.Get().(*[]byte)
	n, err := c.read(*page)
	c.head.over = true
	if n == 0 {
		pool.Put(page)
		page = nil
	}
	return page, n, err
}
