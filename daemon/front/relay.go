package front

import (
	"io"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/listen"
	"github.com/warmpath/warmpath/daemon/upstream"
)

// relay writes a streamed answer to the client: one write for each read of the worker.
//
// It takes the connection over from fasthttp, or from the lane. Under fasthttp's own SetBodyStream a stream holds the
// reader of the next request, a writer and a copy buffer for as long as it lasts, 25 KB that nothing uses, and every
// chunk is copied once more. Afterwards the connection is given back.
type relay struct {
	*reception
	v      *visit        // until the answer has ended
	idle   time.Duration // how long the connection waits for another request
	conn   *listen.Conn
	out    *exchange.Outbound
	header []upstream.Field // beside out's
	http11 bool
	ahead  []byte // of the next request, read by fasthttp already
	keep   bool   // the connection serves another request afterwards
	began  bool   // the head has been written
}

// frame is the bytes around a chunk: its size in hex and the ends of lines.
const frame = 8

// A stream begins with a small buffer, for a token is a few hundred bytes; one that fills it gets a larger one. The
// larger one takes 32 KB with the room around the piece: ten bytes more, and the allocator gives it 40.
const smallPiece, largePiece = 1 << 10, 32<<10 - frame - 2

var (
	smallPieces = sync.Pool{New: func() any { b := make([]byte, frame+smallPiece+2); return &b }}
	largePieces = sync.Pool{New: func() any { b := make([]byte, frame+largePiece+2); return &b }}
)

// startRelay has the answer of v written to the connection, once nobody else uses that.
func startRelay(v *visit, out *exchange.Outbound) {
	r := &relay{v: v, reception: v.reception, idle: v.epoch.IdleTimeout, out: out, header: v.ownFields(out)}
	v.body.free(&v.in)
	w := v.way
	v.way = nil
	w.handOver(r.begin)
}

// begin is called once the connection is the relay's.
func (r *relay) begin(h handed) {
	r.conn = h.conn
	r.http11 = h.http11
	r.ahead = h.ahead
	r.keep = h.keep
	go r.run() // the caller takes its memory back, or ends
}

// run writes the answer, then serves on or closes.
func (r *relay) run() {
	open := true
	defer func() {
		if p := recover(); p != nil { // one stream breaks, not the process
			r.log.Error("BUG: a stream made the daemon panic", "panic", p, "id", r.v.in.ID, "pool", r.v.in.Seen.Pool,
				"stack", string(debug.Stack()))
			r.conn.Abort()
			r.v.end()
			if open {
				r.closeAfterPanic()
			}
		}
	}()
	err := r.copy()
	open = false
	r.out.Stream.Close()
	r.v.end()
	r.v.release(time.Now())
	if err != nil && !r.http11 {
		r.conn.Abort() // its end would look like a whole answer's
	}
	if err != nil || !r.keep {
		r.conn.Close()
		return
	}
	if len(r.ahead) > 0 {
		r.serveOn(r.conn, r.ahead)
		return
	}
	r.awaitRequest(r.conn, r.idle)
}

// closeAfterPanic counts the stream down at its worker. A second panic would end the process.
func (r *relay) closeAfterPanic() {
	defer func() { _ = recover() }()
	r.out.Stream.Close()
}

// copy writes head and body. An error is the client's or the worker's; then the last chunk is not written.
func (r *relay) copy() error {
	buf := smallPieces.Get().(*[]byte)
	pool := &smallPieces
	defer func() { pool.Put(buf) }()
	for {
		b := *buf
		n, err := r.out.Stream.Read(b[frame : len(b)-2])
		r.v.sent += int64(n)
		if n > 0 || err == io.EOF {
			if werr := r.write(b, n, err == io.EOF); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n == len(b)-2-frame && pool == &smallPieces {
			pool.Put(buf)
			pool = &largePieces
			buf = pool.Get().(*[]byte)
		}
	}
}

const lastChunk = "0\r\n\r\n"

// write sends the n bytes that stand in b behind the room for a frame. The head and the last chunk go in the same
// write.
func (r *relay) write(b []byte, n int, last bool) error {
	piece := b[frame : frame+n]
	if r.http11 && r.out.Length < 0 && n > 0 {
		size := strconv.AppendUint(b[:0:frame-2], uint64(n), 16) // at most 4 digits
		from := frame - 2 - len(size)
		copy(b[from:], size)
		copy(b[frame-2:], "\r\n")
		copy(b[frame+n:], "\r\n")
		piece = b[from : frame+n+2]
	}
	if r.began && !last {
		_, err := r.conn.Write(piece)
		return err
	}
	var all []byte
	if !r.began {
		r.began = true
		all = r.head()
	}
	all = append(all, piece...)
	if last && r.http11 && r.out.Length < 0 {
		all = append(all, lastChunk...)
	}
	if len(all) == 0 {
		return nil
	}
	_, err := r.conn.Write(all)
	return err
}

// head returns the status line and the fields.
func (r *relay) head() []byte {
	h := answerHead{status: r.out.Status, fields: [2][]upstream.Field{r.header, r.out.Header},
		length: max(unknown, r.out.Length), at: time.Now()}
	if h.length == unknown && !r.http11 {
		r.keep = false // the close is its end
		h.unframed = true
	}
	h.last = !r.keep
	return h.appendTo(make([]byte, 0, 512))
}
