package front

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/exchange"
)

var bodies = sync.Pool{New: func() any { return new([]byte) }}

// freeBody gives the body's memory back. A stream may last for minutes after the worker has the request.
func (v *visit) freeBody() {
	if v.raw == nil {
		return
	}
	if cap(*v.raw) <= keepBody {
		bodies.Put(v.raw)
	}
	v.raw, v.in.Body, v.in.Tail = nil, nil, nil
}

// keepBody is the largest body buffer that is kept for the next request.
const keepBody = 1 << 20

// intake reads a request's body with a bound and a deadline a piece. It is the Tail of a request that is not held whole.
type intake struct {
	conn    net.Conn
	r       io.Reader // nil: there is no body
	left    int64     // -1 = chunked
	room    int64     // until the body is over the limit
	timeout time.Duration
	reads   int
	passed  bool // part of it has been read as a Tail
	ended   bool
}

// Passed implements exchange.Tail.
func (b *intake) Passed() bool { return b.passed }

// Read reads the next piece. The first pieces come under the header's deadline; each one after has a deadline of its own.
func (b *intake) Read(p []byte) (int, error) {
	b.passed = true
	if b.ended {
		return 0, io.EOF // what comes next on the connection is the next request
	}
	b.reads++
	if b.reads > 2 && b.conn != nil {
		_ = b.conn.SetReadDeadline(time.Now().Add(b.timeout))
	}
	n, err := b.r.Read(p)
	b.room -= int64(n)
	if b.left > 0 {
		b.left -= int64(n)
	}
	switch {
	case b.room < 0:
		return 0, exchange.ErrTooLarge
	case b.left == 0 || err == io.EOF && b.left < 0:
		b.ended = true
		return n, io.EOF
	case err == nil:
		return n, nil
	case err == io.EOF: // fasthttp's word for a body that is shorter than its length
		return n, io.ErrUnexpectedEOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, exchange.ErrSlowBody
	}
	return n, err
}

// done tells whether nothing of the body is left on the connection.
func (b *intake) done() bool { return b.r == nil || b.ended }

// takeBody reads the body into memory, up to buffer_body_bytes; the rest becomes the request's Tail.
func (v *visit) takeBody(fc *fasthttp.RequestCtx) exchange.Fault {
	r := fc.RequestBodyStream()
	if r == nil {
		v.in.Body = fc.Request.Body()
		return exchange.Fault{}
	}
	length := int64(fc.Request.Header.ContentLength())
	v.body = intake{conn: fc.Conn(), r: r, left: max(-1, length), room: int64(v.epoch.MaxBody), timeout: v.epoch.ReadTimeout,
		ended: length == 0}
	if v.body.ended {
		return exchange.Fault{}
	}
	v.raw = bodies.Get().(*[]byte)
	raw := (*v.raw)[:0]
	defer func() { *v.raw = raw }()
	if want := min(length, int64(v.epoch.BufferBody)); int64(cap(raw)) < want {
		raw = make([]byte, 0, want)
	}
	for len(raw) < v.epoch.BufferBody {
		if len(raw) == cap(raw) {
			raw = append(raw, 0)[:len(raw)] // only for a body of unknown length
		}
		n, err := v.body.Read(raw[len(raw):min(cap(raw), v.epoch.BufferBody)])
		raw = raw[:len(raw)+n]
		if err == nil {
			continue
		}
		v.in.Body = raw
		switch {
		case err == io.EOF:
			return exchange.Fault{}
		case errors.Is(err, exchange.ErrTooLarge):
			return exchange.FaultTooLarge
		case errors.Is(err, exchange.ErrSlowBody):
			return exchange.FaultSlowBody
		}
		return exchange.FaultFraming
	}
	v.in.Body, v.in.Tail, v.in.Left = raw, &v.body, v.body.left
	v.body.passed = false
	return exchange.Fault{}
}
