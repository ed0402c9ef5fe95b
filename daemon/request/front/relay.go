package front

import (
	"io"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/listen"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// relay writes a streamed answer to the client: one write for each read of the worker.
//
// It takes the connection over from fasthttp. Under fasthttp's own SetBodyStream a stream holds the
// reader of the next request, a writer and a copy buffer for as long as it lasts, 25 KB that nothing uses, and every
// chunk is copied once more. Afterwards the connection is given back.
type relay struct {
	*handler
	watched
	q      *request      // until the answer has ended
	idle   time.Duration // how long the connection waits for another request
	conn   *listen.Conn
	out    *message.Outbound
	header []upstream.Field // beside out's
	http11 bool
	next   []byte // of the next request, read by fasthttp already
	keep   bool   // the connection serves another request afterwards
	began  bool   // the head has been written
	waited bool   // it has waited without a piece
	rest   *ahead // has the rest of the answer; nil = the stream has it
	pieces *sync.Pool
	piece  *[]byte // of pieces; nil while the worker sends nothing
}

// frame is the bytes around a chunk: its size in hex and the ends of lines.
const frame = 8

// A stream begins with small buffers, for a token is a few hundred bytes. It holds none while it waits, which is a
// twelfth of an open stream's memory. One that fills a small one gets larger ones; where a wait holds none, one that
// fills half of it: events go on whole, so a fast stream of them rarely fills one. That takes a chunk flat out to .86
// of the CPU time. The larger one takes 32 KB with the room around the piece: ten bytes more, and the allocator gives
// it 40.
const smallPiece, largePiece = 1 << 10, 32<<10 - frame - 2

var (
	smallPieces = sync.Pool{New: func() any { b := make([]byte, frame+smallPiece+2); return &b }}
	largePieces = sync.Pool{New: func() any { b := make([]byte, frame+largePiece+2); return &b }}
)

// startRelay writes the answer of q to the connection, once no other goroutine uses the connection.
func startRelay(q *request, out *message.Outbound) {
	r := &relay{q: q, handler: q.handler, idle: q.epoch.IdleTimeout, out: out, header: q.ownFields(out)}
	if q.in.Seen.Comments > 0 { // they came with a head
		r.headed()
	}
	r.client = q.in.Client()
	q.body.free(&q.in)
	fc := q.fc
	q.fc = nil
	takeOver(fc, r.begin)
}

// begin is called once the connection is the relay's.
func (r *relay) begin(t takenOver) {
	r.conn = t.conn
	r.http11 = t.http11
	r.next = t.ahead
	r.keep = t.keep
	go r.run() // the caller takes its memory back, or ends
}

// run writes the answer, then serves on or closes.
func (r *relay) run() {
	open := true
	defer func() {
		if p := recover(); p != nil { // one stream breaks, not the process
			r.breakOff(p, open)
		}
	}()
	err := r.copy()
	r.endAhead()
	open = false
	r.out.Stream.Close()
	q := r.q
	q.record(time.Now())
	q.end()   // after its line: a drain waits for the end alone
	r.q = nil // it belongs to another request as soon as forget was called
	q.forget()
	if err != nil && !r.http11 {
		r.conn.AbortOnceSent() // its end would look like a whole answer's
	}
	if err != nil || !r.keep {
		r.conn.Close()
		return
	}
	if len(r.next) > 0 {
		r.serveOn(r.conn, r.next)
		return
	}
	r.awaitRequest(r.conn, r.idle)
}

// breakOff resets the connection after a panic, and ends the stream if it has not ended.
func (r *relay) breakOff(p any, open bool) {
	if r.q == nil {
		r.abort(r.conn, p)
		return
	}
	r.conn.Abort()
	r.endAhead()
	r.log.Error("BUG: a stream made the daemon panic", "panic", p, "id", r.q.in.ID, "pool", r.q.in.Seen.Pool,
		"stack", string(debug.Stack()))
	if open {
		r.closeAfterPanic()
	}
	r.q.recordAfterPanic()
	r.q.end()
}

// endAhead ends what is read ahead of the client. The client has had it, or is gone.
func (r *relay) endAhead() {
	if r.rest != nil {
		r.rest.close(r.q.Gone)
		r.rest = nil
	}
}

// closeAfterPanic counts the stream down at its worker. A second panic would end the process.
func (r *relay) closeAfterPanic() {
	defer func() { _ = recover() }()
	r.out.Stream.Close()
}

// copy writes head and body. An error is the client's or the worker's; then the last chunk is not written.
func (r *relay) copy() error {
	r.pieces = &smallPieces
	defer r.Drop()
	read := func() (int, error) { return r.out.Stream.Read(r.Take()) }
	if s, ok := r.out.Stream.(roomReader); ok {
		read = func() (int, error) { return s.ReadRoom(r) }
	}
	if s, ok := r.out.Stream.(interface{ HoldsPlace() bool }); ok && s.HoldsPlace() {
		r.relays.add(r)
		defer r.relays.remove(r)
	}
	for {
		if r.rest != nil {
			read = func() (int, error) { return r.rest.read(r) }
		}
		n, err := read()
		r.q.sent += int64(n)
		if n > 0 || err == io.EOF {
			if werr := r.write(n, err == io.EOF); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if r.pieces == &smallPieces && (n == smallPiece || r.waited && n >= smallPiece/2) {
			r.Drop()
			r.pieces = &largePieces
		}
	}
}

// roomReader is a stream that holds no memory while it waits.
type roomReader interface {
	ReadRoom(room upstream.Room) (int, error)
}

// Take returns the room for a piece. It implements [upstream.Room].
func (r *relay) Take() []byte {
	if r.piece == nil {
		r.piece = r.pieces.Get().(*[]byte)
	}
	b := *r.piece
	return b[frame : len(b)-2]
}

// Drop gives the piece's memory back.
func (r *relay) Drop() {
	if r.piece != nil {
		r.pieces.Put(r.piece)
		r.piece = nil
		r.waited = true
	}
}

// headPool holds memory for the head of a stream, or its end, and a piece.
var headPool = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

const lastChunk = "0\r\n\r\n"

// write sends the first n bytes of the piece. The head and the last chunk go in the same write.
func (r *relay) write(n int, last bool) error {
	piece := r.Take()[:n]
	b := *r.piece
	if r.http11 && r.out.Length < 0 && n > 0 {
		size := strconv.AppendUint(b[:0:frame-2], uint64(n), 16) // at most 4 digits
		from := frame - 2 - len(size)
		copy(b[from:], size)
		copy(b[frame-2:], "\r\n")
		copy(b[frame+n:], "\r\n")
		piece = b[from : frame+n+2]
	}
	if r.began && !last {
		return r.toClient(piece)
	}
	buf := headPool.Get().(*[]byte)
	defer headPool.Put(buf)
	all := (*buf)[:0]
	if !r.began {
		all = r.head(all)
	}
	all = append(all, piece...)
	if last && r.http11 && r.out.Length < 0 {
		all = append(all, lastChunk...)
	}
	if len(all) == 0 {
		return nil
	}
	if cap(all) <= largePiece {
		*buf = all
	}
	return r.toClient(all)
}

// head appends the status line and the fields. The fields may be reused afterwards.
func (r *relay) head(b []byte) []byte {
	h := answerHead{status: r.out.Status, fields: [2][]upstream.Field{r.header, r.out.Header},
		length: max(unknown, r.out.Length), at: time.Now()}
	if h.length == unknown && !r.http11 {
		r.keep = false // the close is its end
		h.unframed = true
	}
	h.last = !r.keep
	b = h.appendTo(b)
	r.headed()
	return b
}

// headed marks that the client has the head.
func (r *relay) headed() {
	r.began = true
	r.header = nil
	r.q.dropFields()
}
