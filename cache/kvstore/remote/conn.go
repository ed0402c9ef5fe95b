package remote

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
	"time"
)

// conn ends a connection whose server is silent. go-redis has one deadline for a command: 128 MiB need a long one, but
// a server that hangs should be noticed soon. So each read and each write of a part has a deadline of its own here,
// within the command's.
type conn struct {
	net.Conn
	silence     time.Duration
	read, write time.Time // the command's deadlines; zero = none, as for a subscription
}

// part is the bytes that one deadline covers: 1 MiB in half a second is 2 MB/s.
const part = 1 << 20

// quiet wraps a connection. The library probes idle ones through syscall.Conn, if they implement it.
func quiet(c net.Conn, silence time.Duration) net.Conn {
	q := &conn{Conn: c, silence: silence}
	if raw, ok := c.(syscall.Conn); ok {
		return struct {
			*conn
			syscall.Conn
		}{q, raw}
	}
	return q
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	c.read, c.write = t, t
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline bounds the reads to come.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.read = t
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline bounds the writes to come.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.write = t
	return c.Conn.SetWriteDeadline(t)
}

// next returns the deadline of the next part.
func (c *conn) next(limit time.Time) time.Time {
	if t := time.Now().Add(c.silence); t.Before(limit) {
		return t
	}
	return limit
}

// Read reads the bytes that are there, or waits for some until the server has been silent for too long.
func (c *conn) Read(p []byte) (int, error) {
	if !c.read.IsZero() {
		if err := c.Conn.SetReadDeadline(c.next(c.read)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}

// Write writes p part by part.
func (c *conn) Write(p []byte) (n int, err error) {
	for {
		if !c.write.IsZero() {
			if err := c.Conn.SetWriteDeadline(c.next(c.write)); err != nil {
				return n, err
			}
		}
		m, err := c.Conn.Write(p[n:min(n+part, len(p))])
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// dialer connects to servers. The context of Dial also bounds the TLS handshake.
type dialer struct{ silence time.Duration }

// Dial implements goredis.Dialer.
func (d dialer) Dial(ctx context.Context, network, addr string, conf *tls.Config) (net.Conn, error) {
	plain := &net.Dialer{Timeout: d.silence, KeepAlive: 15 * time.Second}
	c, err := plain.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if conf == nil {
		return quiet(c, d.silence), nil
	}
	secured, err := handshake(ctx, c, conf, addr, d.silence)
	if err != nil {
		c.Close()
		return nil, err
	}
	return quiet(secured, d.silence), nil
}

// handshake checks the certificate for the address that was dialled, whichever server of a cluster has it.
func handshake(ctx context.Context, c net.Conn, conf *tls.Config, addr string,
	silence time.Duration) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	conf = conf.Clone()
	conf.ServerName = host
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	t := tls.Client(c, conf)
	return t, t.HandshakeContext(ctx)
}
