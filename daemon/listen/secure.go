package listen

import (
	"crypto/tls"
	"net"
	"time"
)

// secure is a Conn that speaks TLS. It is a type of its own because fasthttp takes every connection that has these two methods
// for one of TLS (ctx.IsTLS, scheme https).
type secure struct{ *Conn }

// Handshake does the TLS handshake within the read deadline. fasthttp sets that to its ReadTimeout and calls this on the
// connection's own goroutine before it reads, so that a slow client keeps nobody waiting. A first Read or Write does it too.
func (s secure) Handshake() error { return s.tls.Handshake() }

// ConnectionState tells version, protocol and names.
func (s secure) ConnectionState() tls.ConnectionState { return s.tls.ConnectionState() }

// wire is the same Conn as crypto/tls sees it: the bytes on the socket, with the deadline for writes.
type wire Conn

func (w *wire) Read(b []byte) (int, error)         { return w.raw.Read(b) }
func (w *wire) Write(b []byte) (int, error)        { return (*Conn)(w).send(b) }
func (w *wire) Close() error                       { return w.raw.Close() }
func (w *wire) LocalAddr() net.Addr                { return w.raw.LocalAddr() }
func (w *wire) RemoteAddr() net.Addr               { return w.raw.RemoteAddr() }
func (w *wire) SetDeadline(t time.Time) error      { return w.raw.SetReadDeadline(t) }
func (w *wire) SetReadDeadline(t time.Time) error  { return w.raw.SetReadDeadline(t) }
func (w *wire) SetWriteDeadline(t time.Time) error { return nil }

var (
	_ net.Conn = (*Conn)(nil)
	_ net.Conn = secure{}
	_ net.Conn = (*wire)(nil)
)
