package front

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/transport/listen"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// lane serves the requests of the plainest form on a connection. It gives the connection to fasthttp, with its bytes
// unread, as soon as one is of another form. It is the way of its visits.
type lane struct {
	*reception
	post
	first  bool           // no request has been served: the client has the header's time, and not that of a wait
	most   listen.Silence // of the wait: what comes of it is in waitOn
	idleAt time.Time      // when the last request ended; zero = none has
	waitBy time.Time      // when the wait is over
	headBy time.Time      // when the first request's head is late

	// Of the request under way.
	head  plainHead
	page  *[]byte // what was read with the head; nil once it has been used
	rest  []byte  // of page: what has not been used
	left  int64   // of the body, rest included
	small *[]byte // a body that was copied from page
	next  []byte  // what the client sent behind the request
	last  bool    // the connection ends with the answer
	given bool    // a relay has the connection
	reply *[]byte // the answer: head and, if it is small, body
	large []byte  // the body of an answer if it is not
}

// A page takes a head with a body of 32 KB. What is larger is read into the body's own memory.
const (
	pageSize  = 48 << 10
	largeBody = pageSize / 2 // a body of so many bytes stays in its page, while a smaller one would waste it
	wholeSize = 16 << 10     // an answer of so many bytes is copied, to be written with its head
)

var (
	pagePool  = sync.Pool{New: func() any { b := make([]byte, pageSize); return &b }}
	replyPool = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}
)

// enterLane serves the requests on a plain connection. first is true for one that has just been accepted.
func (r *reception) enterLane(conn *listen.Conn, first bool) {
	l := &lane{reception: r, first: first}
	l.client = conn
	r.traffic.man(&l.post)
	l.run()
}

// run serves until the connection is closed or another reader has it.
func (l *lane) run() {
	defer func() {
		if p := recover(); p != nil { // one connection breaks, not the process
			l.log.Error("BUG: a connection made the daemon panic", "panic", p, "client", l.client.Remote(),
				"stack", string(debug.Stack()))
			l.traffic.leave(&l.post)
			l.client.Abort()
		}
	}()
	for l.serveNext() {
	}
}

// serveNext waits for a request and serves it. It returns false if the lane has ended, or goes on elsewhere.
func (l *lane) serveNext() bool {
	page, n, err := l.await()
	switch {
	case errors.Is(err, listen.ErrParked):
		l.waitOn()
		return false
	case l.first && errors.Is(err, os.ErrDeadlineExceeded) && !l.traffic.draining.Load(): // fasthttp answers 408
		l.traffic.leave(&l.post)
		l.client.FailNext(err)
		l.serveOn(l.client, nil)
		return false
	case err != nil, !l.take():
		l.traffic.leave(&l.post)
		l.client.Close()
		return false
	}
	l.waitBy = time.Time{}
	b := (*page)[:n]
	if !l.head.read(b, l.maxHeader) || !l.admits() {
		ahead := bytes.Clone(b)
		pagePool.Put(page)
		l.traffic.leave(&l.post)
		l.leaveHead(ahead)
		return false
	}
	l.page = page
	l.rest = b[l.head.size:]
	l.left = l.head.length
	l.attend(l)
	l.dropBody()
	if l.given {
		return false
	}
	l.first = false
	return l.write()
}

// waitOn goes on with a wait that has taken a while: first in a goroutine whose stack is small again, then in none.
// From then on the next request waits for the watcher's goroutine, which costs it a quarter of its CPU.
func (l *lane) waitOn() {
	if l.most == listen.Short {
		l.most = listen.Long
		l.head = plainHead{}
		go l.run()
		return
	}
	l.most = listen.Endless
	l.client.Await(l.waitBy, l.run)
}

// await waits for the first bytes of a request.
func (l *lane) await() (*[]byte, int, error) {
	if l.waitBy.IsZero() {
		l.beginWait()
	}
	if err := l.client.SetReadDeadline(l.waitBy); err != nil {
		return nil, 0, err
	}
	return l.client.Next(&pagePool, l.most)
}

// beginWait sets for how long the lane may wait.
func (l *lane) beginWait() {
	epoch := l.backend.Epoch()
	limit := epoch.IdleTimeout
	l.most = listen.Short
	if l.first {
		limit = epoch.ReadTimeout
		l.most = listen.Endless
	}
	if l.traffic.draining.Load() { // read after the state is that the lane waits
		limit = min(limit, grace)
	}
	now := l.idleAt
	if now.IsZero() {
		now = time.Now()
	}
	if l.first {
		l.headBy = now.Add(epoch.ReadTimeout)
	}
	l.waitBy = now.Add(limit)
}

// leaveHead leaves a request to fasthttp, of which ahead has come. A client that sent nothing at first has the rest of
// the header's time.
func (l *lane) leaveHead(ahead []byte) {
	l.client.Unread(ahead)
	lease := l.client.Lease()
	if l.first {
		l.client.HeadBy(l.headBy)
	}
	_ = l.serveConn(lease)
}

// admits reports whether the request may be served here. A sentry would turn the others away.
func (l *lane) admits() bool {
	epoch := l.backend.Epoch()
	return l.head.length <= int64(epoch.MaxBody) && l.traffic.full(epoch) == notRefused
}

// write writes the answer. It returns false if it was the last on the connection.
func (l *lane) write() bool {
	_, err := l.client.Write(*l.reply)
	if err == nil && l.large != nil {
		_, err = l.client.Write(l.large)
		l.idleAt = time.Now() // a slow reader has taken a while
	}
	replyPool.Put(l.reply)
	l.reply = nil
	l.large = nil
	switch {
	case err != nil || l.last:
		l.traffic.leave(&l.post)
		l.client.Close()
		return false
	case l.next != nil:
		next := l.next
		l.traffic.leave(&l.post)
		l.serveOn(l.client, next)
		return false
	}
	l.awaitNext()
	return true
}

// dropBody gives the memory of the request's body back.
func (l *lane) dropBody() {
	l.dropPage()
	if l.small != nil {
		buffers.Put(l.small)
		l.small = nil
	}
}

func (l *lane) dropPage() {
	if l.page != nil {
		pagePool.Put(l.page)
		l.page = nil
		l.rest = nil
	}
}

// The lane implements way with what follows.

func (l *lane) conn() *listen.Conn { return l.client }

func (l *lane) line(in *exchange.Inbound) {
	in.Method = "POST"
	in.Path = l.head.path
	in.Host = l.head.host
	in.Remote = l.client.Remote()
}

func (l *lane) fields(into []upstream.Field) ([]upstream.Field, bool) {
	return append(into, l.head.fields...), true
}

func (l *lane) turnedAway() (exchange.Fault, bool) { return exchange.Fault{}, false }

// body returns the body whole if it has come with the head.
func (l *lane) body() (whole []byte, r io.Reader, length int64) {
	length = l.head.length
	if int64(len(l.rest)) < length {
		_ = l.client.SetReadDeadline(time.Now().Add(l.backend.Epoch().ReadTimeout)) // each Read sets it as well
		return nil, l, length
	}
	whole = l.rest[:length]
	l.left = 0
	if len(l.rest) > len(whole) {
		l.next = bytes.Clone(l.rest[length:])
	}
	if length < largeBody {
		l.small = buffers.Get().(*[]byte)
		*l.small = append((*l.small)[:0], whole...)
		whole = *l.small
		l.dropPage()
	}
	return whole, nil, length
}

// Read reads the body, and nothing behind it.
func (l *lane) Read(b []byte) (n int, err error) {
	b = b[:min(int64(len(b)), l.left)]
	if len(l.rest) > 0 {
		n = copy(b, l.rest)
		l.rest = l.rest[n:]
		if len(l.rest) == 0 {
			l.dropPage()
		}
	} else {
		n, err = l.client.Read(b)
	}
	l.left -= int64(n)
	return n, err
}

// unread returns true: a visit asks only while it has not asked for the body.
func (l *lane) unread() bool { return true }

func (l *lane) end() { l.last = true }

func (l *lane) answer(fields []upstream.Field, out *exchange.Outbound, at time.Time) {
	l.idleAt = at
	if l.reply == nil {
		l.reply = replyPool.Get().(*[]byte)
	}
	h := answerHead{status: out.Status, length: int64(len(out.Body)), last: l.last, at: at}
	body := out.Body
	if s := out.Status; s < 200 || s == 204 || s == 304 {
		h.length = bodiless
		body = nil
	}
	h.fields = [2][]upstream.Field{fields, out.Header}
	b := h.appendTo((*l.reply)[:0])
	l.large = nil
	if len(body) <= wholeSize {
		b = append(b, body...)
	} else {
		l.large = body
	}
	*l.reply = b
}

// handOver passes the connection to begin. The lane ends with it.
func (l *lane) handOver(begin func(handed)) {
	l.given = true
	l.traffic.leave(&l.post)
	l.dropBody()
	begin(handed{conn: l.client, http11: true, ahead: l.next, keep: !l.last})
}

// awaitRequest waits for the next request, and serves the connection on. fasthttp counts a connection without one as
// busy in its first 5 s, and a drain would wait for it. It also holds 25 KB for one that waits longer.
func (r *reception) awaitRequest(conn *listen.Conn, idle time.Duration) {
	if !conn.IsTLS() {
		r.enterLane(conn, false)
		return
	}
	first := make([]byte, 1)
	n := 0
	if conn.SetReadDeadline(time.Now().Add(r.traffic.park(conn, idle))) == nil {
		n, _ = conn.Read(first)
	}
	r.traffic.unpark(conn)
	if n == 0 {
		conn.Close()
		return
	}
	r.serveOn(conn, first)
}

// serveOn serves the requests on a connection. ahead was read of the next one already.
func (r *reception) serveOn(conn *listen.Conn, ahead []byte) {
	conn.Unread(ahead)
	_ = r.serveConn(conn.Lease()) // what ends it is the client's or logged there
}

// turnstile gives fasthttp the connections that are not for a lane.
type turnstile struct {
	*listen.Listener
	*reception
}

// Accept returns the next connection that speaks TLS.
func (t turnstile) Accept() (net.Conn, error) {
	for {
		c, err := t.Listener.Accept()
		if err != nil {
			return nil, err
		}
		conn := listen.From(c)
		if conn.IsTLS() {
			return c, nil
		}
		go t.enterLane(conn, true)
	}
}
