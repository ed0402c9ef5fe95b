package upstream

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// maxHead bounds the head of an answer, interim answers before it included.
const maxHead = 64 << 10

// maxCopied is up to where a body is copied behind its head instead of sent by a vector: 1 KiB costs 20 ns to copy.
const maxCopied = 2 << 10

// maxSimple is up to where a body is sent before the answer is looked at. A worker that does not read still takes that much
// (Linux offers a window of 64 KiB and keeps 16 KiB or more on our side); beyond it, one that refuses early and reads no more
// would not be heard until the deadline.
const maxSimple = 64 << 10

var heads = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// run sends r on a pooled connection and, if that turns out to be dead, once more on a fresh one.
func (x *Response) run(r *Request) error {
	c, now := x.client, time.Now()
	var cn *conn
	err := errStale
	for err == errStale {
		if cn = c.pooled(r, now); cn == nil {
			return x.fresh(r)
		}
		err = x.try(cn, r, now)
	}
	c.reused.Add(1)
	if err == nil || !cn.silent || x.canceled.Load() || isTimeout(err) {
		return err
	}
	c.replaced.Add(1)
	err = x.fresh(r)
	var f *failure
	if errors.As(err, &f) && f.notSent { // but the dead connection's worker may have seen it
		f.notSent, f.unanswered = false, x.ctx.Err() == nil
	}
	return err
}

// errStale tells that a pooled connection was dead before anything was sent on it.
var errStale = errors.New("the connection was closed while it was idle")

// pooled takes connections from the pool until one is alive, or can say so when r is sent on it.
func (c *Client) pooled(r *Request, now time.Time) *conn {
	for r.Tail == nil {
		cn := c.idle.take(now)
		if cn == nil {
			return nil
		}
		if cn.asks() && len(r.Body) <= maxSimple {
			cn.first.pooled = true
			return cn
		}
		cn.arm(now, c.config.HeaderTimeout) // a deadline that has passed would make it look dead
		if cn.alive() {
			return cn
		}
		cn.close()
	}
	return nil
}

// fresh sends r on a new connection.
func (x *Response) fresh(r *Request) error {
	cn, err := x.client.dial(x.ctx)
	if err != nil {
		return err
	}
	err = x.try(cn, r, time.Now())
	if err != nil && cn.silent && !x.canceled.Load() && !isTimeout(err) && !errors.Is(err, ErrTail) && !errors.Is(err, ErrStalled) {
		return &failure{what: "the worker closed the connection without an answer", err: err, unanswered: true}
	}
	return err
}

// try sends r on a connection and reads the answer's head. On an error the connection is closed.
func (x *Response) try(cn *conn, r *Request, now time.Time) (err error) {
	cn.silent = true
	x.live.Store(cn)
	if x.canceled.Load() { // it ran before it could see the connection
		x.Ended()
	}
	x.conn, x.keep = cn, true
	wait := x.client.config.HeaderTimeout
	if r.FirstByte > 0 && r.FirstByte < wait {
		wait = r.FirstByte
		cn.armExactly(now, wait)
	} else {
		cn.arm(now, wait)
	}
	if r.Tail != nil || len(r.Body) > maxSimple {
		err = x.duplex(cn, r, wait)
	} else {
		err = x.simple(cn, r)
	}
	if err == nil {
		return nil
	}
	x.drop()
	if cn := x.live.Swap(nil); cn != nil {
		cn.close()
	}
	if err == errStale {
		return err
	}
	if x.canceled.Load() {
		return &failure{what: "the request was canceled", err: x.cause()}
	}
	return fmt.Errorf("upstream: no answer: %w", err)
}

// simple sends the request, then reads.
func (x *Response) simple(cn *conn, r *Request) error {
	block, n, werr, err := cn.ask(r)
	if err == errStale {
		return err
	}
	if werr != nil {
		if isTimeout(werr) {
			return werr
		}
		cn.armExactly(time.Now(), lastWords) // a worker that refused early and closed has said why
		x.keep = false
		block, n, err = cn.readBlock()
	}
	if err == nil {
		err = x.headFrom(cn, block, n, r.Method == "HEAD")
	}
	if err != nil {
		if werr != nil {
			return werr
		}
		return err
	}
	return nil
}

// lastWords is how long an answer is waited for that came, if at all, before the connection broke.
const lastWords = time.Second

// sendHead sends head and Body.
func sendHead(cn *conn, r *Request) error {
	buf := heads.Get().(*[]byte)
	b := r.appendHead((*buf)[:0], cn.client.hostLine)
	body := r.Body
	if r.chunkedBody() && len(body) > 0 {
		b = fmt.Appendf(b, "%x\r\n", len(body))
	}
	if len(body) <= maxCopied {
		b, body = append(b, body...), nil
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

// readHead reads up to the final head. What came behind it stays in x.rest.
func (x *Response) readHead(cn *conn, noBody bool) error {
	block, n, err := cn.readBlock()
	if err != nil {
		return err
	}
	return x.headFrom(cn, block, n, noBody)
}

// headFrom is readHead from the first bytes on, which stand in block.
func (x *Response) headFrom(cn *conn, block *[blockSize]byte, n int, noBody bool) error {
	cn.silent = false
	x.block = block
	buf, from, line := block[:], 0, 0
	for {
		end, next, err := headEnd(buf[:n], line)
		if line = next; err != nil {
			return err
		}
		if end > 0 {
			if done, err := x.takeHead(string(buf[from:end]), noBody); err != nil {
				return err
			} else if done {
				if x.rest = buf[end:n]; end == n {
					x.drop()
				}
				return nil
			}
			from = end
			continue
		}
		if n >= len("HTTP/1.") && string(buf[:7]) != "HTTP/1." {
			return fmt.Errorf("%w: it does not begin with HTTP/1", errAnswer)
		}
		if n == len(buf) {
			if n >= maxHead {
				return fmt.Errorf("%w: its head is over %d bytes", errAnswer, maxHead)
			}
			buf = append(make([]byte, 0, maxHead), buf...)[:maxHead]
			x.drop()
		}
		m, err := cn.net.Read(buf[n:])
		if m == 0 {
			return early(ended(m, err))
		}
		n += m
	}
}

// takeHead takes in one head. It is not done if that is an interim one (RFC 9110, section 15.2).
func (x *Response) takeHead(s string, noBody bool) (done bool, err error) {
	h := head{header: x.fields[:0]}
	if err := h.parse(s); err != nil || h.status < 200 {
		return false, err
	}
	x.Status, x.Header, x.Length = h.status, h.header, h.length
	x.left, x.keep = h.length, x.keep && h.keep
	switch {
	case noBody || h.status == 204 || h.status == 304:
		x.Length, x.left, x.framed = 0, 0, byLength
	case h.chunked:
		x.framed = byChunks
	case h.length >= 0:
		x.framed = byLength
	default:
		x.framed, x.keep = byClose, false
	}
	return true, nil
}
