package upstream

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/transport/socket"
)

// conn is one connection to the worker. It has one owner at a time, the pool or an exchange, and only its owner
// closes it.
type conn struct {
	net      net.Conn     // socket itself, or TLS on it
	tcp      *socket.Conn // nil = Config.Dial made net
	hostLine string
	prefix   string // of every path
	counts   *counts
	deadline time.Time // of reads and writes, as last set
	epoch    uint64    // of the pool when it was made
	mark     uint64    // of the last request
	holding  Holding   // of its answer, or nil

	first  firstRead
	silent bool // no byte of an answer has come on it since the request
	one    [1]byte
}

// counts counts what has happened to the connections of a client. Only tests read it: a connection that is lost, or
// given to two, shows here first.
type counts struct{ open, dials, reused, replaced, canceled atomic.Int64 }

// newConn takes over tcp, and secure on it unless that is nil.
func newConn(tcp *socket.Conn, secure *tls.Conn, p *pool) *conn {
	cn := &conn{net: tcp, tcp: tcp, hostLine: p.hostLine, prefix: p.prefix, counts: &p.counts}
	if secure != nil {
		cn.net = secure
	}
	cn.first.init(tcp, secure == nil, cn)
	return cn
}

// close closes the connection; call it once. TLS sends no close_notify: that may block on a worker that reads nothing.
func (cn *conn) close() {
	cn.counts.open.Add(-1)
	if cn.tcp == nil {
		cn.net.Close()
		return
	}
	cn.tcp.Close()
}

// arm sets the deadline to d from now. It keeps the deadline in force if that is at most an eighth of d later: so a
// stream that flows sets one every d/8 instead of one each read.
func (cn *conn) arm(now time.Time, d time.Duration) {
	if left := cn.deadline.Sub(now); left >= d && left <= d+d/8 {
		return
	}
	cn.armExactly(now, d+d/8)
}

// armExactly sets the deadline to d from now.
func (cn *conn) armExactly(now time.Time, d time.Duration) {
	cn.deadline = now.Add(d)
	cn.net.SetDeadline(cn.deadline)
}

// alive reports whether an unused connection may carry a request: it is open, and no bytes have come on it that answer
// no request. Package tls may have read such bytes already, with the answer before them.
func (cn *conn) alive() bool {
	if !cn.first.alive() {
		return false
	}
	if cn.plain() {
		return true
	}
	cn.net.SetReadDeadline(past)
	n, err := cn.net.Read(cn.one[:])
	cn.net.SetReadDeadline(cn.deadline)
	return n == 0 && isTimeout(err)
}

// past is a deadline that lets a read return what is in memory, and nothing else.
var past = time.Unix(1, 0)

// plain reports whether what the worker wrote comes on the socket itself: no TLS.
func (cn *conn) plain() bool { return cn.net == net.Conn(cn.tcp) }

// write sends head and body, in one system call where there is no TLS.
func (cn *conn) write(head, body []byte) error {
	if cn.plain() {
		_, err := cn.tcp.WriteBoth(head, body)
		return err
	}
	_, err := cn.net.Write(head)
	if err == nil && len(body) > 0 {
		_, err = cn.net.Write(body)
	}
	return err
}

// maxCopied is the most of a body that is copied behind its head instead of sent by a vector: 1 KiB costs 20 ns to
// copy.
const maxCopied = 2 << 10

var heads = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// sendHead sends the head and Body of a request.
func (cn *conn) sendHead(r *Request) error {
	buf := heads.Get().(*[]byte)
	b := r.appendHead((*buf)[:0], cn.prefix, cn.hostLine)
	body := r.Body
	if r.chunkedBody() && len(body) > 0 {
		b = fmt.Appendf(b, "%x\r\n", len(body))
	}
	if len(body) <= maxCopied {
		b = append(b, body...)
		body = nil
	}
	err := cn.write(b, body)
	if err == nil && r.chunkedBody() && len(r.Body) > 0 {
		err = cn.write([]byte("\r\n"), nil)
	}
	if cap(b) <= maxHead {
		*buf = b
		heads.Put(buf)
	}
	return err
}

// ask sends a request and waits for the first bytes of the answer. It returns a sendFailure if sending failed, and
// errStale if the connection was dead before.
func (cn *conn) ask(r *Request) (start, error) {
	if cn.first.usable() {
		return cn.first.ask(r)
	}
	if err := cn.sendHead(r); err != nil {
		return start{}, &sendFailure{err}
	}
	return cn.readHeld()
}

// readStart waits for the first bytes of an answer.
func (cn *conn) readStart() (start, error) {
	if cn.first.usable() {
		return cn.first.read()
	}
	return cn.readHeld()
}

// readHeld is readStart for a connection whose wait needs a buffer.
func (cn *conn) readHeld() (start, error) {
	block := blocks.Get().(*[blockSize]byte)
	n, err := cn.net.Read(block[:])
	if n == 0 {
		blocks.Put(block)
		return start{}, ended(n, err)
	}
	return start{block, n}, nil
}

// ended makes the end of a connection an error.
func ended(n int, err error) error {
	if n == 0 && err == nil {
		return io.EOF
	}
	return err
}
