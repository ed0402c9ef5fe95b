package listen

import (
	"crypto/tls"
	"net"
	"sync/atomic"
)

// lease is a Conn in the hands of an HTTP server, which takes it for its own: it closes it, and keeps it as the key of its maps.
// Once the Conn has been taken over, what the server still does to the lease touches nobody.
type lease struct {
	*Conn
	over atomic.Bool
}

// Close closes the connection, unless it was taken over.
func (l *lease) Close() error {
	if l.over.Load() {
		return nil
	}
	return l.Conn.Close()
}

// secureLease is a lease of a connection that speaks TLS. It is a type of its own because fasthttp takes every connection that
// has these two methods for one of TLS (ctx.IsTLS, scheme https).
type secureLease struct{ lease }

// Handshake does the TLS handshake within the read deadline. fasthttp sets that to its ReadTimeout and calls this on the
// connection's own goroutine before it reads, so that a slow client keeps nobody waiting. A first Read or Write does it too.
func (s *secureLease) Handshake() error { return s.tls.Handshake() }

// ConnectionState tells version, protocol and names.
func (s *secureLease) ConnectionState() tls.ConnectionState { return s.tls.ConnectionState() }

// Lease gives the connection to an HTTP server, as Accept does.
func (c *Conn) Lease() net.Conn {
	if c.tls != nil {
		return &secureLease{lease{Conn: c}}
	}
	return &lease{Conn: c}
}

// From is the Conn behind what Accept and Lease returned and fasthttp's ctx.Conn hands out; nil for any other connection.
func From(c net.Conn) *Conn {
	switch c := c.(type) {
	case *lease:
		return c.Conn
	case *secureLease:
		return c.Conn
	case *Conn:
		return c
	}
	return nil
}

// TakeOver ends a lease: the Conn is the caller's from now on, and the server's Close does nothing. It returns nil for a
// connection that is not ours.
func TakeOver(c net.Conn) *Conn {
	switch c := c.(type) {
	case *lease:
		c.over.Store(true)
		return c.Conn
	case *secureLease:
		c.over.Store(true)
		return c.Conn
	}
	return nil
}

// Unread makes the next reads give b first: what a server had read ahead of the request that it handed over. b is not copied.
func (c *Conn) Unread(b []byte) { c.ahead = b }

var (
	_ net.Conn = (*lease)(nil)
	_ net.Conn = (*secureLease)(nil)
)
