package upstream

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// run sends r on a pooled connection and, if that turns out to be dead, once more on a fresh one.
func (x *Response) run(r *Request) error {
	now := r.At
	if now.IsZero() {
		now = time.Now()
	}
	var cn *conn
	err := errStale
	for err == errStale {
		cn = x.pool.take(r, now)
		if cn == nil {
			return x.fresh(r)
		}
		err = x.try(cn, r, now)
	}
	x.pool.counts.reused.Add(1)
	if err == nil || !x.died(cn, err) {
		return err
	}
	x.pool.counts.replaced.Add(1)
	err = x.fresh(r)
	var f *failure
	if errors.As(err, &f) && f.notSent { // but the dead connection's worker may have seen it
		f.notSent = false
		f.unanswered = x.ctx.Err() == nil
	}
	return err
}

// fresh sends r on a new connection.
func (x *Response) fresh(r *Request) error {
	cn, err := x.pool.dial(x.ctx)
	if err != nil {
		return err
	}
	x.newest = true
	err = x.try(cn, r, time.Now())
	if err != nil && x.died(cn, err) && !errors.Is(err, ErrTail) && !errors.Is(err, ErrStalled) {
		return &failure{what: "the worker closed the connection without an answer", err: err, unanswered: true}
	}
	return err
}

// died reports whether the connection broke, without one byte of an answer and by itself.
func (x *Response) died(cn *conn, err error) bool {
	return cn.silent && !x.canceled.Load() && !isTimeout(err)
}

// try sends r on a connection and reads the answer's head. If it returns an error, it has closed the connection.
func (x *Response) try(cn *conn, r *Request, now time.Time) error {
	cn.silent = true
	x.claim.hold(cn)
	x.conn = cn
	x.keep = true
	cn.mark = r.Mark
	wait := x.pool.config.HeaderTimeout
	cn.arm(now, wait)
	var err error
	if r.long() {
		err = x.duplex(cn, r, wait)
	} else {
		err = x.simple(cn, r)
	}
	if err == nil {
		return nil
	}
	x.drop()
	if cn := x.claim.release(); cn != nil {
		cn.close()
	}
	if err == errStale {
		return err
	}
	if x.canceled.Load() {
		return &failure{what: "the request was canceled", err: x.cause()}
	}
	return fmt.Errorf("upstream: no answer: %w", named(err))
}

// simple sends the request, then reads.
func (x *Response) simple(cn *conn, r *Request) error {
	got, err := cn.ask(r)
	if err == errStale {
		return err
	}
	unsent, _ := err.(*sendFailure)
	if unsent != nil {
		if isTimeout(unsent) {
			return unsent.err
		}
		cn.armExactly(time.Now(), lastWords)
		x.keep = false
		got, err = cn.readStart()
	}
	if err == nil {
		err = x.readHead(cn, got, r)
	}
	if err != nil && unsent != nil {
		return unsent.err
	}
	return err
}

// duplex sends a long request while it reads the answer.
func (x *Response) duplex(cn *conn, r *Request, wait time.Duration) error {
	up := &upload{conn: cn, request: r, pause: x.pool.config.ChunkTimeout}
	whole, err := up.exchange(wait, func() error {
		got, err := cn.readStart()
		if err != nil {
			return err
		}
		return x.readHead(cn, got, r)
	})
	x.keep = x.keep && whole
	return err
}

// readHead reads up to the final head. What came behind it stays in x.rest.
func (x *Response) readHead(cn *conn, got start, r *Request) error {
	cn.silent = false
	x.block = got.block
	h := headReader{buf: got.block[:], n: got.n}
	for {
		s, err := h.next()
		if err != nil {
			return err
		}
		if s == "" {
			if err := x.readMore(cn, &h); err != nil {
				return err
			}
			continue
		}
		final, err := x.takeHead(s, r)
		if err != nil {
			return err
		}
		if final {
			x.rest = h.rest()
			if len(x.rest) == 0 {
				x.drop()
			}
			return nil
		}
	}
}

// readMore reads more of a head.
func (x *Response) readMore(cn *conn, h *headReader) error {
	if h.full() {
		h.grow()
		x.drop()
	}
	n, err := cn.net.Read(h.buf[h.n:])
	if n == 0 {
		return early(ended(n, err))
	}
	h.n += n
	return nil
}

// takeHead fills in what a head holds. It returns false for an interim one.
func (x *Response) takeHead(s string, r *Request) (final bool, err error) {
	h := head{header: x.fields[:0], upgrade: r.Upgrade}
	err = h.parse(s)
	switch {
	case err != nil:
		return false, err
	case h.status == 101 && !strings.EqualFold(h.header.Get("Upgrade"), "websocket"):
		return false, fmt.Errorf("%w: status 101 to something else than a WebSocket", errAnswer)
	case h.status == 101:
		h.chunked, h.length = false, -1
	case h.status < 200:
		return false, nil
	}
	x.Status = h.status
	x.Header = h.header
	x.Length = h.length
	x.keep = x.keep && h.keep
	switch {
	case r.Method == "HEAD" || h.status == 204 || h.status == 304:
		x.Length = 0
	case h.chunked:
		x.body.framed = byChunks
	case h.length >= 0:
		x.body.left = h.length
	default:
		x.body.framed = byClose
		x.keep = false
	}
	return true, nil
}
