package upstream

import (
	"io"
	"net"
	"time"

	"github.com/warmpath/warmpath/daemon/transport/socket"
)

// Room is memory for a read that holds none while it waits; Given is one that is there anyway.
type (
	Room  = socket.Room
	Given = socket.Given
)

// Holding knows whether a worker holds an answer up, as one that is paused does.
type Holding interface{ IsHeld() bool }

// Response is the answer of a worker. Read and Close belong to one goroutine.
type Response struct {
	Status int
	Header Header
	Length int64 // of the body that Read gives; -1 = not announced

	claim
	pool *pool

	conn   *conn // what Read reads; nil after the end
	block  *[blockSize]byte
	rest   []byte // came with the head and is not read yet
	body   body
	keep   bool          // the connection may serve another request
	newest bool          // it was made for this request
	pause  time.Duration // by SetChunkTimeout; 0 = the client's
	err    error         // the error that Read returns from now on
	given  Given         // of the Read that runs

	fields [6]Field // room for Header: vLLM sends 4
}

// Read reads the body: the bytes of one read of the connection, without the chunk framing. io.EOF comes only at the
// body's announced end, with the last bytes or after them; a connection that ends before is io.ErrUnexpectedEOF.
func (x *Response) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, x.err
	}
	x.given = p
	n, err := x.ReadRoom(&x.given)
	x.given = nil
	return n, err
}

// ReadRoom is Read into the memory of a room. On a plain connection it holds none of that while it waits, unless the
// body's length is known.
func (x *Response) ReadRoom(room Room) (n int, err error) {
	if x.err != nil {
		return 0, x.err
	}
	if len(x.rest) > 0 {
		n, err = x.buffered(room.Take())
	}
	for n == 0 && err == nil {
		n, err = x.direct(room)
	}
	if err != nil {
		x.err = err
	}
	if err != nil && err != io.EOF {
		x.finish(false)
	}
	return n, err
}

// Release gives the connection back before Close, once the answer has come to its end and was judged.
func (x *Response) Release() {
	if x.err == io.EOF {
		x.finish(true)
	}
}

// Reject says that the bytes which came are not an answer to this request. The connection is then closed at the end of
// the exchange.
func (x *Response) Reject() { x.keep = false }

// Peer returns where what is sent to a worker goes after its 101. Another goroutine than the reader's may write to it,
// until Close and, in vain, after it.
func (x *Response) Peer() net.Conn { return x.conn.net }

// FirstUse reports whether the connection was made for this request: nothing that comes on it can answer another one.
func (x *Response) FirstUse() bool { return x.newest }

// SetChunkTimeout bounds the reads to come by d in place of the client's ChunkTimeout; 0 = that again. vLLM sends the
// head of a stream before the prefill, which takes longer than any pause after it.
func (x *Response) SetChunkTimeout(d time.Duration) { x.pause = d }

// AskBeforeTimeout has h asked when nothing has come for the chunk timeout: if the worker holds the answer up, Read
// waits on. Without it Read returns ErrStalled.
func (x *Response) AskBeforeTimeout(h Holding) {
	if x.conn != nil {
		x.conn.holding = h
	}
}

// buffered reads of the rest that came with the head.
func (x *Response) buffered(p []byte) (int, error) {
	n, used, err := x.body.take(p, x.rest)
	x.rest = x.rest[used:]
	if len(x.rest) == 0 {
		x.drop()
	}
	return n, err
}

// direct reads from the connection straight into the room and takes the framing off in place.
func (x *Response) direct(room Room) (int, error) {
	x.conn.arm(time.Now(), positive(x.pause, x.pool.config.ChunkTimeout))
	n, err := x.receive(room)
	if n == 0 && isTimeout(err) && !x.canceled.Load() && x.conn.holding != nil && x.conn.holding.IsHeld() {
		return 0, nil
	}
	if n == 0 {
		return 0, x.broken(ended(n, err))
	}
	p := room.Take()
	got, used, err := x.body.take(p, p[:n])
	x.keep = x.keep && used == n
	return got, err
}

// receive reads from the connection.
func (x *Response) receive(room Room) (int, error) {
	if x.body.framed == byLength {
		p := room.Take()
		return x.conn.net.Read(p[:min(int64(len(p)), x.body.left)]) // the bytes behind it are not ours to read
	}
	if x.conn.plain() {
		return x.conn.tcp.ReadRoom(room)
	}
	return x.conn.net.Read(room.Take())
}

// broken returns the error for a connection that ended inside a body.
func (x *Response) broken(err error) error {
	switch {
	case x.canceled.Load():
		return x.cause()
	case err == io.EOF && x.body.framed == byClose:
		x.keep = false
		return io.EOF
	case isTimeout(err):
		return ErrStalled
	}
	return early(err)
}

// Close ends the exchange. A connection whose answer has come to its end serves others from then on, unless Reject was
// called. If the rest of the body has neither been read nor come already, Close closes the connection, which makes the
// worker stop.
func (x *Response) Close() error {
	for x.err == nil && len(x.rest) > 0 && x.body.framed != byClose {
		_, x.err = x.buffered(x.rest) // in place
	}
	if x.err == nil {
		x.err = errClosed
	}
	x.finish(x.err == io.EOF)
	return nil
}

// finish ends the exchange once: the connection goes back to the pool if whole, else it is closed.
func (x *Response) finish(whole bool) {
	whole = whole && x.keep && len(x.rest) == 0
	x.drop()
	x.conn = nil
	x.claim.forget()
	cn := x.claim.release()
	if cn == nil {
		return // ended before, or canceled
	}
	if x.err == errClosed {
		cn.counts.canceled.Add(1)
	}
	cn.holding = nil
	if whole {
		x.pool.put(cn)
	} else {
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
