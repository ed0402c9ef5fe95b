package listen

import (
	"net"
	"time"
)

// wire is the same Conn as crypto/tls sees it: the bytes on the socket, with the deadline for writes.
type wire Conn

func (w *wire) Read(b []byte) (int, error)         { return w.socket.Read(b) }
func (w *wire) Write(b []byte) (int, error)        { return (*Conn)(w).send(b) }
func (w *wire) Close() error                       { return w.raw.Close() }
func (w *wire) LocalAddr() net.Addr                { return w.raw.LocalAddr() }
func (w *wire) RemoteAddr() net.Addr               { return w.raw.RemoteAddr() }
func (w *wire) SetDeadline(t time.Time) error      { return w.raw.SetReadDeadline(t) }
func (w *wire) SetReadDeadline(t time.Time) error  { return w.raw.SetReadDeadline(t) }
func (w *wire) SetWriteDeadline(t time.Time) error { return nil }

var (
	_ net.Conn = (*Conn)(nil)
	_ net.Conn = (*wire)(nil)
)
