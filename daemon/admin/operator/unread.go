package operator

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// unread is a pseudo header: the length of a body that is not read, -1 = unknown. Its leading blank keeps clients from
// sending it.
const unread = " unread"

// leaveUnread marks a request to be answered without its body, before the connection is closed.
func leaveUnread(h *fasthttp.RequestHeader, length string) {
	h.Set(unread, length)
	h.SetContentLength(0)
	h.SetConnectionClose()
	h.Del(fiber.HeaderExpect) // a client that waits for 100 Continue sends nothing, and reads the answer
}

// lingerUnread makes the connections of such requests read on after the answer.
func lingerUnread(c *fiber.Ctx) error {
	if conn, ok := c.Context().Conn().(*lingeringConn); ok && len(c.Request().Header.Peek(unread)) > 0 {
		conn.linger.Store(true)
	}
	return c.Next()
}

// lingering is a listener whose connections may linger.
type lingering struct{ net.Listener }

// Accept waits for the next connection.
func (l lingering) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &lingeringConn{Conn: c, opened: time.Now()}, nil
}

// firstByte is how long a client may take to begin its first request. The connections are few, and silent ones would
// keep a scrape waiting.
const firstByte = 5 * time.Second

// lingeringConn reads on when it is closed, if the client is still sending: a plain close would reset the connection,
// and the client might not see the answer.
type lingeringConn struct {
	net.Conn
	linger atomic.Bool
	opened time.Time
	begun  bool // something has come; only the goroutine that reads uses it
}

// Read reads, and until something has come with the deadline of the first byte.
func (c *lingeringConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.begun = c.begun || n > 0
	return n, err
}

// SetReadDeadline bounds reads.
func (c *lingeringConn) SetReadDeadline(t time.Time) error {
	if end := c.opened.Add(firstByte); !c.begun && (t.IsZero() || end.Before(t)) {
		t = end
	}
	return c.Conn.SetReadDeadline(t)
}

// Bounds of the reading after a close: a module that is twice too long comes within a second or two.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 32 << 20
)

// Close closes the connection after the client got what was written.
func (c *lingeringConn) Close() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.linger.Swap(false) && half.CloseWrite() == nil {
		_ = c.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
	return c.Conn.Close()
}
