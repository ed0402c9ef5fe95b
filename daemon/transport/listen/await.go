package listen

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/warmpath/warmpath/daemon/transport/socket"
)

// longSilence is how long a goroutine waits for a client. One that is silent for longer may never ask again, and its
// connection needs no goroutine from then on.
const longSilence = 30 * time.Second

// Await waits for a request on a connection that no server holds, and calls then when the wait is over. came is false
// if the client has left or the connection is closed, or if nothing has come until that time or a second later.
//
// At first the caller's goroutine waits. On Linux no goroutine waits for a plain connection any more after longSilence,
// and then is called on one of its own.
func (c *Conn) Await(until time.Time, then func(came bool)) {
	if c.asked.Load() == 0 {
		c.asks()
	}
	c.AwaitMore(until, c.census.longSilence, then)
}

// AwaitMore is Await for more of a request that was taken over, which is none of the connections without a request that
// others may take the place of. A goroutine waits for as long as patience.
func (c *Conn) AwaitMore(until time.Time, patience time.Duration, then func(came bool)) {
	soon := time.Now().Add(patience)
	if c.tls != nil || until.Before(soon) {
		soon = until
	}
	err := c.awaitData(soon)
	if soon == until || !errors.Is(err, os.ErrDeadlineExceeded) {
		then(err == nil)
		return
	}
	c.presence.await(until, func() {
		_ = c.census.watcher.await(&c.presence, c.raw, false) // of a closed one: awaitData returns the error
		then(c.awaitData(until) == nil)
	})
	if c.census.watcher.await(&c.presence, c.raw, true) != nil { // this system cannot
		c.presence.stir()
	}
}

// errLeft is awaitData's error once the client has left.
var errLeft = errors.New("listen: the client has left")

// awaitData waits until the client has sent something. What has come is found also after the deadline: a close with a
// request unread would be a reset, and its client would not know whether the request was served.
func (c *Conn) awaitData(deadline time.Time) error {
	tcp, ok := c.socket.(*socket.Conn)
	if !ok || c.tls != nil { // TLS may hold bytes that the socket has not any more
		return c.awaitByte(deadline)
	}
	if err := c.readBy.ask(c.raw, deadline); err != nil {
		return err
	}
	if err := c.readBy.begin(c.raw, 0); err != nil {
		return err
	}
	defer c.readBy.end()
	var found error
	look := func(fd uintptr) (done bool) {
		found = peekByte(fd)
		return found != syscall.EAGAIN
	}
	err := tcp.Raw().Read(look)
	if errors.Is(err, os.ErrDeadlineExceeded) && tcp.Raw().Control(func(fd uintptr) { look(fd) }) == nil &&
		found != syscall.EAGAIN {
		return found
	}
	return errors.Join(err, found)
}

// peekByte returns nil if there is something to read, EAGAIN if nothing has come, and errLeft at the end.
func peekByte(fd uintptr) error {
	var b [1]byte
	for {
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
		case err == nil && n == 0:
			return errLeft
		default:
			return err
		}
	}
}

// awaitByte waits for a byte, which the next read returns again.
func (c *Conn) awaitByte(deadline time.Time) error {
	if err := c.SetReadDeadline(deadline); err != nil {
		return err
	}
	first := make([]byte, 1)
	n, err := c.read(first) // the next read passes it on to the head's check
	if n == 0 {
		return errors.Join(err, errLeft)
	}
	c.Unread(first)
	return nil
}
