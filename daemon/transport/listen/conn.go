package listen

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/daemon/transport/socket"
)

const (
	// A client whose request is refused before its body was read is sending still. Closing then makes the kernel answer
	// its next packet with a reset, which a client reports in place of the answer that lies before it: Python's
	// http.client in 30 of 30 uploads of 8 MB, Go's in 16. Most clients look for an answer only after they have sent
	// everything, so the bound has to hold a whole body: 256 KB saved none of the 30, this all. A line of 26 Mbit/s
	// carries 16 MB in 5 s.
	lingerTime  = 5 * time.Second
	lingerBytes = 16 << 20

	lingerBrief = 250 * time.Millisecond // a round trip, for the answer to be read
)

// Conn is a client's connection. Reads and writes as those of any net.Conn; Watch and Unwatch from anywhere.
type Conn struct {
	raw    net.Conn
	socket net.Conn  // reads and writes raw: a socket.Conn, or raw itself
	tls    *tls.Conn // nil for a plain connection; writes to (*wire)(c)
	census *census
	remote string // the client's IP address

	readBy lazy // the deadline of a plain connection's reads

	// Only the goroutine that serves the connection uses these.
	ahead []byte // Unread set it: the next reads return it first
	head  head   // of the request under way
	since int64  // the look since which the lease waits for a request, see lazy; 0 = it does not
	owes  bool   // Owe was called on this lease
	owed  int    // bytes, by Owe
	wrote int    // bytes since then

	answered atomic.Bool // NextRequest was called, and no read deadline has been set on a lease since

	// See crowd.go.
	asked   atomic.Int64 // the look before which the server began to wait for a request; 0 = it has one
	reading atomic.Int64 // the look before which the read under way began; 0 = there is none
	shown   atomic.Bool  // the head of a request has come at some time

	armed  atomic.Int64 // when the write deadline was last set, in ns after census.start; 0 = never
	closed atomic.Bool
	linger atomic.Int64 // for so many ns Close reads on; 0 = it closes at once

	presence presence
}

// newConn makes a plain connection that was counted in.
func newConn(raw net.Conn, n *census) *Conn {
	c := &Conn{raw: raw, socket: raw, census: n, remote: net.IPv4zero.String()}
	if tcp, ok := raw.(*net.TCPConn); ok {
		if s, err := socket.New(tcp); err == nil {
			c.socket = s
		}
	}
	c.presence.gone = &n.gone
	if a, ok := raw.RemoteAddr().(*net.TCPAddr); ok {
		c.remote = a.IP.String()
	}
	c.asks()
	return c
}

// IsTLS reports whether the client's bytes were encrypted.
func (c *Conn) IsTLS() bool { return c.tls != nil }

// Watch calls g.Gone when the client closes, resets or half-closes the connection from now to Unwatch. If it has done
// so before, Gone is called before Watch returns. A connection has one watcher: a second Watch takes the first one's
// place. Watch and Unwatch allocate nothing and make no system call.
func (c *Conn) Watch(g Goner) (gen uint64) { return c.presence.watch(g) }

// Unwatch ends the Watch that returned gen. It reports whether its Gone was called. Gone neither runs nor will be
// called once Unwatch has returned. If Watch was called again, Unwatch with the older gen does nothing and returns
// false.
func (c *Conn) Unwatch(gen uint64) (gone bool) { return c.presence.unwatch(gen) }

// NextRequest marks that a request was answered, and that the next bytes are the head of another. Accept and Lease mark
// the latter by themselves.
func (c *Conn) NextRequest() {
	c.head = head{}
	c.asks()
	c.answered.Store(true)
}

// Owe marks that the server has got an answer with a body of that many bytes. It may write it only after it has read
// another request that came with the last one.
func (c *Conn) Owe(body int) { c.owes, c.owed, c.wrote = true, body, 0 }

// Settled reports whether the server has written all of its answers so far. The server writes through a buffer of that
// size: when just so much has been written, the rest may still be in there. Only the goroutine that serves the
// connection may ask.
func (c *Conn) Settled(buffer int) bool { return !c.owes || c.wrote > c.owed && c.wrote != buffer }

// HeadCame marks that the head of a request has come, until NextRequest.
func (c *Conn) HeadCame() {
	c.shown.Store(true)
	c.asked.Store(0)
}

// asks marks that the next bytes are the head of a request.
func (c *Conn) asks() { c.asked.Store(c.census.parking.now.Load()) }

// LackRoom records that a request was refused because too many are under way. A client that has stopped in the middle
// of a body keeps a place among them, and may lose it.
func (c *Conn) LackRoom() { c.census.pressed.Store(true) }

// EndedBare reports whether the last head read ends as BareLF describes. Only the goroutine that reads may ask.
func (c *Conn) EndedBare() bool { return c.head.bare }

// Unread makes the next reads return b, and what was unread before behind it. It is for bytes that a server read beyond
// the request that it passed on. b is not copied.
func (c *Conn) Unread(b []byte) {
	if len(b) > 0 {
		c.ahead = append(b, c.ahead...)
	}
}

// Read reads from the client. If a head ends in bare line feeds, it fails instead of waiting for the rest.
func (c *Conn) Read(b []byte) (int, error) {
	if c.head.bare {
		return 0, errBareLF
	}
	c.reading.Store(c.census.parking.now.Load())
	n, err := c.read(b)
	c.reading.Store(0)
	c.head.note(b[:n])
	return n, err
}

func (c *Conn) read(b []byte) (int, error) {
	if len(c.ahead) > 0 {
		n := copy(b, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	if c.tls != nil {
		return c.tls.Read(b)
	}
	err := c.readBy.begin(c.raw, c.since)
	if err != nil {
		return 0, err
	}
	n, err := c.socket.Read(b)
	if c.readBy.end() && n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		err = errParked
	}
	return n, err
}

// Write writes all of b. When WriteTimeout passes without progress, it resets the connection and returns a timeout.
func (c *Conn) Write(b []byte) (int, error) {
	c.wrote += len(b)
	if c.tls != nil {
		return c.tls.Write(b)
	}
	return c.send(b)
}

// send writes to the socket.
func (c *Conn) send(b []byte) (sent int, err error) {
	for {
		c.arm()
		n, err := c.socket.Write(b[sent:])
		sent += n
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if err == nil || !late && !errors.Is(err, syscall.ETIMEDOUT) {
			return sent, err
		}
		if n == 0 || !late { // ETIMEDOUT is TCP_USER_TIMEOUT's
			// A reset: what the kernel still holds is thrown away, and a stream cut here does not look complete.
			c.census.slow.Add(1)
			c.Abort()
			return sent, err
		}
		c.armed.Store(0)
	}
}

// arm gives the next write its time. One deadline serves for a quarter of the timeout, so it is set a quarter late.
func (c *Conn) arm() {
	limit := c.census.writeTimeout
	now := time.Since(c.census.start)
	if last := time.Duration(c.armed.Load()); last != 0 && now-last < limit/4 {
		return
	}
	c.armed.Store(int64(now))
	// An error is that of a closed connection, which Write returns too.
	_ = c.raw.SetWriteDeadline(c.census.start.Add(now + limit + limit/4))
}

// Linger makes Close half-close the connection, and read and throw away what the client is still sending, for up to 5 s
// and 16 MB. Call it when a request is refused whose body was not read, before the answer is written, and only together
// with Connection: close: a plain close may reset the connection before the client has read the answer.
func (c *Conn) Linger() { c.linger.Store(int64(lingerTime)) }

// LingerBriefly is Linger for a client that has sent nothing, or hardly anything, in all of its time. Such a client
// will hardly begin now, and may want no more than a connection that waits 5 s longer.
func (c *Conn) LingerBriefly() { c.linger.Store(int64(lingerBrief)) }

// Close closes the connection; the client gets what was written.
func (c *Conn) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return net.ErrClosed
	}
	if limit := c.linger.Load(); limit > 0 {
		c.lingerFor(time.Duration(limit))
	}
	c.census.parking.remove(c)
	c.census.watcher.remove(&c.presence, c.raw) // before the descriptor can belong to another
	defer c.census.leave()
	defer c.presence.stir()
	if c.tls != nil {
		return c.tls.Close()
	}
	return c.raw.Close()
}

// lingerFor half-closes the connection, and reads until the client closes or has had enough time or bytes.
func (c *Conn) lingerFor(limit time.Duration) {
	if c.tls == nil || c.tls.CloseWrite() == nil {
		drain(c.raw, limit)
	}
}

// drain half-closes a connection, and reads until the other end closes or has had enough time or bytes.
func drain(raw net.Conn, limit time.Duration) {
	half, ok := raw.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || raw.SetReadDeadline(time.Now().Add(limit)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, raw, lingerBytes)
}

// Abort closes the connection with a reset: the client sees a failure and never a clean end. It is for a broken stream
// whose framing cannot show that it is broken (HTTP/1.0, or an end by the close). What was written and not yet sent is
// lost. Abort may be called at any time from anywhere.
func (c *Conn) Abort() {
	first := c.closed.CompareAndSwap(false, true)
	if first {
		c.census.parking.remove(c)
		c.census.watcher.remove(&c.presence, c.raw)
		defer c.census.leave()
	}
	c.resetAtClose()
	_ = c.raw.Close()
	c.presence.stir()
}

// resetAtClose makes the kernel reset the connection when its descriptor is closed.
func (c *Conn) resetAtClose() {
	if tcp, ok := c.raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// AbortOnceSent is Abort after the client's kernel has got what was written, or after 5 s. A reset throws away what is
// still on its way, and the end of a broken stream is the event that has the reason. If the process ends meanwhile, the
// kernel resets the connection.
func (c *Conn) AbortOnceSent() {
	c.resetAtClose()
	wait := time.Millisecond
	for end := time.Now().Add(lingerTime); unsent(c.raw) > 0 && time.Now().Before(end); {
		time.Sleep(wait)
		wait = min(2*wait, 50*time.Millisecond)
	}
	c.Abort()
}

// Remote returns the client's IP address as text, "0.0.0.0" if it has none.
func (c *Conn) Remote() string { return c.remote }

// LocalAddr returns our end.
func (c *Conn) LocalAddr() net.Addr { return c.raw.LocalAddr() }

// RemoteAddr returns the client's end.
func (c *Conn) RemoteAddr() net.Addr { return c.raw.RemoteAddr() }

// SetDeadline sets the read deadline: writes have a deadline of their own.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline bounds reads, those of a handshake too. It may act an eighth of the time later, up to half a second.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if c.tls != nil {
		return c.raw.SetReadDeadline(t)
	}
	return c.readBy.ask(c.raw, t)
}

// SetWriteDeadline does nothing: every write has Config.WriteTimeout to get on.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }
