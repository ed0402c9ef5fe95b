package front

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/inflate"
	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// bodyReader reads a request's body with a bound, and with a deadline for each piece. It is the Tail of a request that
// is not held whole.
type bodyReader struct {
	conn   net.Conn
	r      io.Reader // nil: there is no body
	left   int64     // -1 = chunked
	room   int64     // until the body is over the limit
	pause  uint32    // milliseconds that a piece may take to come
	reads  uint8     // pieces, headPieces+1 at most
	passed bool      // part of it has been read as a Tail
	ended  bool
	buffer *buffer // pooled
}

// buffer is what a body has while it comes.
type buffer struct {
	first []byte // its first part
	holding
	late time.Duration // time spent waiting for pieces, minus the time that leastRate allows for them; 0 or more
}

// headPieces is how many pieces come under the header's deadline: what has come with it.
const headPieces = 1

// The buffers of up to freeBody bytes, and those of up to keepBuffer, are kept for the next requests: a short body
// that came in a long one's buffer would hold as much.
var (
	buffers     = sync.Pool{New: func() any { return new(buffer) }}
	longBuffers = sync.Pool{New: func() any { return new(buffer) }}
)

const keepBuffer = 1 << 20

// newBuffer returns a buffer for a body of that length, -1 if it is not known.
func newBuffer(length int64, p holding) *buffer {
	pool := &buffers
	if length > freeBody {
		pool = &longBuffers
	}
	b := pool.Get().(*buffer)
	b.late = 0
	b.holding = p
	return b
}

// Free gives the buffer's memory back. It implements [account.Body].
func (b *buffer) Free() {
	b.drop()
	switch {
	case cap(b.first) <= freeBody:
		buffers.Put(b)
	case cap(b.first) <= keepBuffer:
		longBuffers.Put(b)
	}
}

// fill reads the body into memory, up to buffer_body_bytes, and makes it that of in. The rest becomes in's Tail.
func (b *bodyReader) fill(in *message.Inbound, fc *fasthttp.RequestCtx, epoch *Epoch, p holding) message.Fault {
	coding, fault := packing(in)
	if fault.Status != 0 {
		return fault
	}
	r := fc.RequestBodyStream()
	if r == nil {
		return message.Fault{}
	}
	length := int64(max(-1, fc.Request.Header.ContentLength()))
	*b = bodyReader{r: r, left: length, room: int64(epoch.MaxBody), ended: length == 0,
		pause: uint32(min(epoch.ReadTimeout.Milliseconds(), math.MaxUint32))}
	if conn := listen.From(fc.Conn()); conn != nil {
		b.conn = conn
	}
	b.buffer = newBuffer(length, p)
	switch {
	case coding != inflate.None:
		return b.unpack(in, b, coding, epoch)
	case b.ended:
		return message.Fault{}
	}
	err := b.readStart(b, length, epoch.BufferBody)
	in.Body = b.buffer.first
	if err == nil {
		in.Tail, in.Left = b, b.left
		b.passed = false
	}
	return startFault(err)
}

// startFault returns the answer to a body whose first bytes could not be read; none if they could.
func startFault(err error) message.Fault {
	if err == nil || err == io.EOF {
		return message.Fault{}
	}
	return message.BodyFault(err)
}

// readStart reads the body's first bytes from source, most at most and no more than may be held, into the buffer. Its
// error is io.EOF if that was all of it. length is -1 if it is not known.
func (b *bodyReader) readStart(source io.Reader, length int64, most int) error {
	held := b.buffer.first[:0]
	defer func() { b.buffer.first = held }()
	want := int(min(length, int64(most), firstPiece))
	switch {
	case !b.buffer.upTo(max(want, cap(held))):
		held = make([]byte, 0, min(most, freeBody))
	case cap(held) < want:
		held = make([]byte, 0, want)
	}
	for len(held) < most {
		if len(held) == cap(held) {
			size := grown(len(held), length, most)
			if !b.buffer.upTo(size) {
				return nil
			}
			held = append(make([]byte, 0, size), held...)
		}
		n, err := source.Read(held[len(held):min(cap(held), most)])
		held = held[:len(held)+n]
		if err != nil {
			return err
		}
	}
	return nil
}

// firstPiece is the memory that a body gets before any of it has come. A client could announce megabytes and send none,
// and would hold all of them: the runtime clears memory that it uses again, which makes it resident.
const firstPiece = 256 << 10

// grown returns the size of a body's memory after n bytes have arrived: four times as much, up to the length or most.
// length is -1 if it is not known.
func grown(come int, length int64, most int) int {
	if length >= 0 {
		most = int(min(length, int64(most)))
	}
	return max(come+1, min(4*max(1<<10, come), most))
}

// free gives the memory of in's body back. A stream may last for minutes after the worker has the request.
func (b *bodyReader) free(in *message.Inbound) {
	if p, ok := in.Tail.(*packed); ok {
		p.end()
	}
	in.DropKept()
	in.Body, in.Tail = nil, nil
	if b.buffer != nil {
		in.Account.Keep(b.buffer) // a prefill may still read it
		b.buffer = nil
	}
}

// Passed implements message.Tail.
func (b *bodyReader) Passed() bool { return b.passed }

// Read reads the next piece. The first pieces come under the header's deadline; each one after has a deadline of its
// own.
func (b *bodyReader) Read(p []byte) (int, error) {
	b.passed = true
	if b.ended {
		return 0, io.EOF // the next bytes on the connection are the next request
	}
	b.reads = min(b.reads, headPieces) + 1
	n, err := b.readPiece(p)
	b.room -= int64(n)
	if b.left > 0 {
		b.left -= int64(n)
	}
	switch {
	case b.room < 0:
		return 0, message.ErrTooLarge
	case b.left == 0 || err == io.EOF && b.left < 0:
		b.ended = true
		return n, io.EOF
	case err == nil:
		return n, nil
	case err == io.EOF: // fasthttp's error for a body that is shorter than its length
		return n, io.ErrUnexpectedEOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, message.ErrSlowBody
	}
	return n, err
}

// leastRate is the average rate in bytes a second at which a client must send a body, after a grace time of
// leastTime. A request counts in max_in_flight while its body comes, so one that sends a byte now and then would keep
// a place from the others: for as long as it likes, if all that came fast before were to its credit.
const (
	leastRate = 16 << 10
	leastTime = 30 * time.Second
)

// readPiece reads with the deadline of a piece: read_timeout, and no longer than the least rate allows. Time in which
// the worker does not take what has come is none of the client's.
func (b *bodyReader) readPiece(p []byte) (int, error) {
	if b.reads <= headPieces || b.conn == nil || b.buffer == nil {
		return b.r.Read(p)
	}
	began, late := time.Now(), &b.buffer.late
	_ = b.conn.SetReadDeadline(began.Add(min(leastTime-*late, time.Duration(b.pause)*time.Millisecond)))
	n, err := b.r.Read(p)
	*late = max(0, *late+time.Since(began)-time.Duration(n)*time.Second/leastRate)
	return n, err
}

// done reports whether nothing of the body is left on the connection.
func (b *bodyReader) done() bool { return b.r == nil || b.ended }
