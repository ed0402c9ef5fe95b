package upstream

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// conn is one connection to the worker. It has one owner at a time, the pool or an exchange, and only its owner closes it.
type conn struct {
	client   *Client
	net      net.Conn // tcp itself, or TLS on it
	tcp      net.Conn
	raw      syscall.RawConn // of tcp
	deadline time.Time       // of reads and writes, as last set
	vec      [2][]byte       // what a writev sends
	bufs     net.Buffers     // into vec

	first     firstRead
	readFirst func(fd uintptr) bool // first.try, bound once
	sendFirst func(fd uintptr) bool // first.send, bound once
	probe     func(fd uintptr) bool // first.ask, bound once
	silent    bool                  // no byte of an answer has come on it since the request
}

// blockSize is enough for a head and a small body together. Nothing of it is held while an answer is waited for, nor once
// the caller has read what came with the head.
const blockSize = 4 << 10

var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// dial makes a fresh connection. Its errors are NotSent.
func (c *Client) dial(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.ConnectTimeout)
	defer cancel()
	tcp, err := c.dialer.DialContext(ctx, "tcp", c.address)
	if err != nil {
		return nil, &failure{what: "no connection", err: err, notSent: true}
	}
	cn := &conn{client: c, net: tcp, tcp: tcp}
	if t, ok := tcp.(*net.TCPConn); ok {
		cn.raw, _ = t.SyscallConn()
	}
	cn.first.conn = cn
	cn.readFirst, cn.sendFirst, cn.probe = cn.first.try, cn.first.send, cn.first.ask
	if c.tls != nil {
		t := tls.Client(tcp, c.tls)
		if err := t.HandshakeContext(ctx); err != nil {
			tcp.Close()
			return nil, &failure{what: "TLS handshake", err: err, notSent: true}
		}
		cn.net = t
	}
	c.dials.Add(1)
	c.open.Add(1)
	return cn, nil
}

// close is called once. TLS is not told: its farewell may wait for a worker that takes nothing.
func (cn *conn) close() {
	cn.client.open.Add(-1)
	cn.tcp.Close()
}

// arm sets the deadline to d from now, or lets a former one stand that is at most an eighth of d later: a stream that
// flows sets one every d/8 instead of one each read.
func (cn *conn) arm(now time.Time, d time.Duration) {
	if left := cn.deadline.Sub(now); left >= d && left <= d+d/8 {
		return
	}
	cn.deadline = now.Add(d + d/8)
	cn.net.SetDeadline(cn.deadline)
}

// armExactly sets the deadline to d from now.
func (cn *conn) armExactly(now time.Time, d time.Duration) {
	cn.deadline = now.Add(d)
	cn.net.SetDeadline(cn.deadline)
}

// write sends head and body in one system call.
func (cn *conn) write(head, body []byte) error {
	if len(body) == 0 {
		_, err := cn.net.Write(head)
		return err
	}
	cn.vec = [2][]byte{head, body}
	cn.bufs = cn.vec[:]
	_, err := cn.bufs.WriteTo(cn.net)
	cn.vec, cn.bufs = [2][]byte{}, nil
	return err
}

// readHeld is readBlock where the wait needs a buffer.
func (cn *conn) readHeld() (*[blockSize]byte, int, error) {
	block := blocks.Get().(*[blockSize]byte)
	n, err := cn.net.Read(block[:])
	if n == 0 {
		blocks.Put(block)
		return nil, 0, ended(n, err)
	}
	return block, n, nil
}

// ended makes the end of a connection an error.
func ended(n int, err error) error {
	if n == 0 && err == nil {
		return io.EOF
	}
	return err
}
