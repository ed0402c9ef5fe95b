package vllmsim

import (
	"io"
	"net"
	"net/http"
	"time"
)

// closing is how a connection is given up.
type closing int

const (
	byFIN     closing = iota
	byReset           // a RST
	byHalfFIN         // a FIN, and the connection stays open for reading until the client has gone
)

// sever drops the connection of a request.
func sever(w http.ResponseWriter, how closing) {
	c := hijack(w)
	if tcp, ok := c.(*net.TCPConn); ok && how == byReset {
		tcp.SetLinger(0)
	}
	c.Close()
}

func hijack(w http.ResponseWriter) net.Conn {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // a recorder, or the connection is gone
	}
	return c
}

// hang reads a request and leaves it without an answer until its client goes away.
func hang(r *http.Request) {
	io.Copy(io.Discard, r.Body) // else nobody watches for the end of the connection
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// sendRaw writes to the connection itself and gives it up.
func sendRaw(w http.ResponseWriter, text string, how closing) {
	c := hijack(w)
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, text); err != nil || how != byHalfFIN {
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		io.Copy(io.Discard, c)
	}
}
