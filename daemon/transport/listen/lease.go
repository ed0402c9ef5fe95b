package listen

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
)

// lease is a Conn that an HTTP server holds and takes for its own: it closes it, and keeps it as the key of its maps.
// Once the Conn has been taken over, calls to the lease do nothing.
type lease struct {
	*Conn
	over  atomic.Bool
	waits bool // for another request, and has none of its bytes
}

// Close closes the connection, unless it was taken over.
func (l *lease) Close() error {
	if l.over.Load() {
		return nil
	}
	return l.Conn.Close()
}

// secureLease is a lease of a connection that speaks TLS. It is a type of its own because fasthttp takes every
// connection that has these two methods for one of TLS (ctx.IsTLS, scheme https).
type secureLease struct{ lease }

// Handshake does the TLS handshake within the read deadline. fasthttp sets that to its ReadTimeout and calls this on
// the connection's own goroutine before it reads, so that a slow client delays no other. A first Read or Write does it
// too.
func (s *secureLease) Handshake() error {
	err := s.tls.Handshake()
	if err != nil {
		s.answerPlain(err)
		s.census.warnUntrusted(s.remote, err)
	}
	return err
}

// plainAnswer answers a client that speaks HTTP without TLS. HTTP/1.0, as the client's version is not known.
const plainAnswer = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"This port speaks HTTPS: begin the URL with https://\n"

// answerPlain answers a client that sent a request in place of a handshake, and logs it.
func (s *secureLease) answerPlain(err error) {
	var record tls.RecordHeaderError
	if !errors.As(err, &record) || record.Conn == nil || !isHTTP(record.RecordHeader[:]) {
		return
	}
	s.census.warnPlain(s.remote)
	if _, err := s.send([]byte(plainAnswer)); err != nil {
		return
	}
	drain(s.raw, lingerBrief) // the rest of the request is unread, see Linger
}

// isHTTP reports whether b can begin a request.
func isHTTP(b []byte) bool {
	for _, method := range []string{"GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH", "CONNE"} {
		if bytes.HasPrefix(b, []byte(method)) {
			return true
		}
	}
	return false
}

// ConnectionState returns version, protocol and names.
func (s *secureLease) ConnectionState() tls.ConnectionState { return s.tls.ConnectionState() }

// Lease gives the connection to an HTTP server, as Accept does.
func (c *Conn) Lease() net.Conn {
	c.NextRequest()
	c.owes = false
	c.answered.Store(false) // or the next request's deadline would be taken for that of a wait
	if c.tls != nil {
		return &secureLease{lease{Conn: c}}
	}
	return &lease{Conn: c}
}

// From returns the Conn behind a connection of Accept or Lease, as in fasthttp's ctx.Conn; nil for any other
// connection.
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

// TakeOver ends a lease: the Conn is the caller's from now on, and the server's Close does nothing. It returns nil for
// a connection that this room did not lease.
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

var (
	_ net.Conn = (*lease)(nil)
	_ net.Conn = (*secureLease)(nil)
)
