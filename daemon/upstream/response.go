package upstream

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// Response is the answer of a worker. Read and Close belong to one goroutine.
type Response struct {
	Status int
	Header Header
	Length int64 // of the body that Read gives; -1 = not announced

	client *Client
	ctx    context.Context
	life   Life        // ctx, if it is one and has not been told to forget this
	stop   func() bool // else of the context's callback; nil = the context never ends

	// live is the connection for whoever ends the exchange: the one that swaps it for nil, Ended or finish, owns it from
	// then on. So a cancel that comes late finds nil, never a connection that serves another request.
	live     atomic.Pointer[conn]
	canceled atomic.Bool

	conn   *conn // what Read reads; nil after the end
	block  *[blockSize]byte
	rest   []byte // came with the head and is not read yet
	framed framing
	left   int64 // of a body of known length
	chunks chunks
	keep   bool          // the connection may serve another request
	pause  time.Duration // as SetChunkTimeout said; 0 = the client's
	err    error         // what Read gives from now on

	fields [6]Field // room for Header: vLLM sends 4
}

// framing is how the end of a body is told.
type framing uint8

const (
	byLength framing = iota
	byChunks
	byClose
)

// Read reads the body: what one read of the connection gave, without the chunk framing. io.EOF comes only at its announced
// end, with the last bytes or after them; a connection that ends before is io.ErrUnexpectedEOF.
func (x *Response) Read(p []byte) (int, error) {
	if x.err != nil || len(p) == 0 {
		return 0, x.err
	}
	n, err := x.buffered(p)
	for n == 0 && err == nil {
		n, err = x.direct(p)
	}
	if err != nil {
		x.err = err
		x.finish(err == io.EOF)
	}
	return n, err
}

// SetChunkTimeout bounds the reads to come by d in place of the client's ChunkTimeout; 0 = that again. vLLM sends the head of a
// stream before the prefill, which takes longer than any pause after it.
func (x *Response) SetChunkTimeout(d time.Duration) { x.pause = d }

// buffered reads what came with the head.
func (x *Response) buffered(p []byte) (int, error) {
	if len(x.rest) == 0 {
		return 0, nil
	}
	n, used, err := x.unframe(p, x.rest)
	x.rest = x.rest[used:]
	if len(x.rest) == 0 {
		x.drop()
	}
	return n, err
}

// direct reads from the connection straight into p and takes the framing off in place.
func (x *Response) direct(p []byte) (int, error) {
	if x.framed == byLength && int64(len(p)) > x.left {
		p = p[:x.left] // what comes behind it is not ours to read
	}
	x.conn.arm(time.Now(), or(x.pause, x.client.config.ChunkTimeout))
	n, err := x.conn.net.Read(p)
	if n == 0 {
		return 0, x.broken(ended(n, err))
	}
	got, used, err := x.unframe(p, p[:n])
	x.keep = x.keep && used == n
	return got, err
}

// unframe moves body from src to dst. Its error is io.EOF when the body is whole.
func (x *Response) unframe(dst, src []byte) (n, used int, err error) {
	switch x.framed {
	case byChunks:
		n, used, err = x.chunks.decode(dst, src)
		if err == nil && x.chunks.at == atEnd {
			err = io.EOF
		}
	case byLength:
		n = copyApart(dst, src[:min(int64(len(src)), x.left)])
		if x.left -= int64(n); x.left == 0 {
			err = io.EOF
		}
		used = n
	default:
		n = copyApart(dst, src)
		used = n
	}
	return n, used, err
}

// cause is why the exchange was ended from outside.
func (x *Response) cause() error {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	return ErrEnded
}

// copyApart is copy, but free where both are the same memory already.
func copyApart(dst, src []byte) int {
	n := min(len(dst), len(src))
	if n > 0 && &dst[0] != &src[0] {
		copy(dst, src[:n])
	}
	return n
}

// broken says what the end of a connection means inside a body.
func (x *Response) broken(err error) error {
	switch {
	case x.canceled.Load():
		return x.cause()
	case err == io.EOF && x.framed == byClose:
		x.keep = false
		return io.EOF
	case isTimeout(err):
		return ErrStalled
	}
	return early(err)
}

// Close ends the exchange. If the body was not read to its end, nor has come already, the connection is closed, which
// tells the worker to stop.
func (x *Response) Close() error {
	for x.err == nil && len(x.rest) > 0 && x.framed != byClose {
		_, x.err = x.buffered(x.rest) // in place
	}
	if x.err == nil {
		x.err = errClosed
	}
	x.finish(x.err == io.EOF)
	return nil
}

// Ended closes the connection at any time, from any goroutine. It implements [Hearer].
func (x *Response) Ended() {
	x.canceled.Store(true)
	if cn := x.live.Swap(nil); cn != nil {
		x.client.canceled.Add(1)
		cn.close()
	}
}

// finish ends the exchange once: the connection goes back to the pool if whole, else it is closed.
func (x *Response) finish(whole bool) {
	whole = whole && x.keep && len(x.rest) == 0
	x.drop()
	x.conn = nil
	if x.life != nil {
		x.life.Forget(x)
		x.life = nil
	} else if x.stop != nil {
		x.stop()
	}
	cn := x.live.Swap(nil)
	if cn == nil {
		return // ended before, or canceled
	}
	if x.err == errClosed {
		x.client.canceled.Add(1)
	}
	if !whole || !x.client.idle.put(cn, time.Now()) {
		cn.close()
	}
}

// drop gives the buffer back.
func (x *Response) drop() {
	x.rest = nil
	if x.block != nil {
		blocks.Put(x.block)
		x.block = nil
	}
}

var _ io.ReadCloser = (*Response)(nil)
