package front

import (
	"log/slog"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// Meter counts what the front answers. [exchange.Meter] counts the rest.
type Meter interface {
	// Answered counts a request that nothing else has counted.
	Answered(s *message.Seen)
	// Shed counts refused load.
	Shed(pool, reason string)
	// Crowded counts a request that was refused before its body was read, as all workers of all these pools were full.
	// It sets the pool of s, if there is but one.
	Crowded(s *message.Seen, pools []*epoch.Pool)
}

// handler answers requests. It holds what they share.
type handler struct {
	log     *slog.Logger
	meter   Meter
	backend Backend
	access  accessLog
	traffic traffic

	holdings   holdings
	slimmed    atomic.Int64 // bytes of headers that were dropped since they were last collected
	books      account.Books
	readBuffer int // of a connection whose request is served
	relays     relays
	sockets    atomic.Int64 // WebSockets open

	serveConn func(net.Conn) error // has fasthttp serve the requests on a connection that it has not accepted
}

// awaitRequest waits for the next request on a connection that fasthttp does not hold, and has it served. fasthttp
// counts a connection without a request as busy in its first 5 s, and a drain would wait for it. It also holds 25 KB
// for one that waits longer.
func (h *handler) awaitRequest(conn *listen.Conn, idle time.Duration) {
	conn.Await(time.Now().Add(h.traffic.park(conn, idle)), func(came bool) {
		h.traffic.unpark(conn)
		if !came {
			conn.Close()
			return
		}
		h.serveOn(conn, nil)
	})
}

// serveOn serves the requests on a connection. ahead was read of the next one already.
func (h *handler) serveOn(conn *listen.Conn, ahead []byte) {
	defer func() {
		if p := recover(); p != nil { // one connection breaks, not the process
			h.abort(conn, p)
		}
	}()
	conn.Unread(ahead)
	_ = h.serveConn(conn.Lease()) // what ends it is the client's or logged there
}

// abort resets a connection that made the daemon panic.
func (h *handler) abort(conn *listen.Conn, p any) {
	h.log.Error("BUG: a connection made the daemon panic", "panic", p, "client", conn.Remote(),
		"stack", string(debug.Stack()))
	conn.Abort()
}
