package front

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// tunnel passes a WebSocket on: bytes, in both directions. Frames are not read, except for where those to the client
// end: only there may the router write a close frame of its own.
//
// One goroutine waits for the worker, and ends the tunnel. Another one waits for the client, until it has been silent
// for a while; then package listen watches the connection. Without TLS neither holds a buffer while it waits.
type tunnel struct {
	*handler
	q     *request // until end
	conn  *listen.Conn
	out   *message.Outbound
	up    net.Conn // to the worker
	ahead []byte   // came from the client before the worker's answer
	piece *[]byte  // nil while the worker sends nothing
	to    frames   // that the client gets
	idle  time.Duration
	until time.Time    // the limit of the client's key; zero = none
	moved atomic.Int64 // when something last went either way, in Unix ns
	idled atomic.Bool  // for idle nothing did
	late  atomic.Bool  // until has passed

	mu   sync.Mutex // guards over
	over bool       // q may belong to another request

	step atomic.Int32 // of the wait for the client
	came bool         // the client has sent something
}

// How far a wait for the client is.
const (
	waits    int32 = iota
	waited         // it is over, and its caller goes on
	isHanded       // its caller has returned, and the end of the wait goes on
)

const (
	goingAway   = 1001 // codes of close frames (RFC 6455, section 7.4.1)
	violation   = 1008
	serverError = 1011

	patience    = time.Second      // with a silent client, of a goroutine
	workerTakes = 30 * time.Second // what the client sends; write_timeout's default
	closeWait   = time.Second      // for a worker that has sent its close frame to close the connection
)

// startTunnel gives the client the worker's 101, and the tunnel the connection.
func startTunnel(q *request, out *message.Outbound) {
	t := &tunnel{q: q, handler: q.handler, out: out, idle: q.epoch.SocketIdle,
		up: out.Stream.(interface{ Peer() net.Conn }).Peer()}
	if life := q.in.Caller.SocketLife; life > 0 {
		t.until = time.Now().Add(life)
	}
	h := answerHead{status: out.Status, at: time.Now()}
	h.fields[0], h.fields[1] = q.ownFields(out), out.Header
	head := h.appendTo(nil)
	q.dropFields()
	q.body.free(&q.in)
	q.conn.Unwatch(q.watch) // what the client sent last is still to be passed on
	fc := q.fc
	fc.Response.SetStatusCode(out.Status)
	q.fc = nil
	takeOver(fc, func(taken takenOver) {
		t.conn, t.ahead = taken.conn, taken.ahead
		t.sockets.Add(1)
		t.moved.Store(time.Now().UnixNano())
		_, err := t.conn.Write(head) // here: the tunnel's own stack stays small
		go t.run()
		switch {
		case err != nil:
			t.leave()
		case t.conn.IsTLS():
			go t.fromClient(patience)
		default: // a client that says nothing never has a goroutine
			t.fromClient(0)
		}
	})
}

// run passes on what the worker sends, and ends the tunnel.
func (t *tunnel) run() {
	defer t.sockets.Add(-1)
	defer func() {
		if p := recover(); p != nil { // one tunnel breaks, not the process
			t.abort(t.conn, p)
			t.end()
		}
	}()
	t.fromWorker()
	t.Drop()
	t.out.Stream.Close()
	t.sayWhy()
	t.end()
	t.conn.Close()
}

// fromWorker passes on what the worker sends, until that or the client ends.
func (t *tunnel) fromWorker() {
	stream := t.out.Stream.(roomReader)
	for {
		n, err := stream.ReadRoom(t)
		if n > 0 {
			p := t.Take()[:n]
			t.q.sent += int64(n)
			t.moved.Store(time.Now().UnixNano())
			t.to.pass(p)
			if _, err := t.conn.Write(p); err != nil {
				return
			}
			t.Drop()
		}
		if err != nil {
			return
		}
	}
}

// Take returns the room for a piece. It implements [upstream.Room].
func (t *tunnel) Take() []byte {
	if t.piece == nil {
		t.piece = largePieces.Get().(*[]byte)
	}
	return *t.piece
}

// Drop gives the piece's memory back.
func (t *tunnel) Drop() {
	if t.piece != nil {
		largePieces.Put(t.piece)
		t.piece = nil
	}
}

// sayWhy records how the tunnel has ended. It writes a close frame, unless the worker has written one or is in the
// midst of a frame.
func (t *tunnel) sayWhy() {
	code, why, seen := uint16(serverError), "the worker has closed the connection", &t.q.in.Seen
	switch closed := t.to.closed.Load(); {
	case closed:
		seen.End = ""
		return
	case message.CauseOf(t.q.life) == message.ErrDraining:
		code, why = goingAway, "the router stops"
	case t.late.Load():
		code, why = violation, "websocket_life of the API key"
		seen.End = "websocket_life"
	case t.idled.Load():
		code, why = goingAway, "idle"
		seen.End = "idle"
	case seen.End == "client_gone":
		return
	default:
		seen.End = "broken"
	}
	if t.to.whole() {
		frame := binary.BigEndian.AppendUint16([]byte{0x80 | opClose, byte(2 + len(why))}, code)
		_, _ = t.conn.Write(append(frame, why...)) // the client may be gone, too
	}
}

// end ends the request.
func (t *tunnel) end() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.q.record(time.Now())
	t.q.end()
	t.q.forget()
}

// leave ends the worker's connection, and so the tunnel.
func (t *tunnel) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.q.life.End(message.ErrClientGone)
	}
}

// fromClient passes on what the client sends, until it leaves or is silent for so long that no goroutine waits for it:
// at first for wait.
func (t *tunnel) fromClient(wait time.Duration) {
	defer func() {
		if p := recover(); p != nil {
			t.log.Error("BUG: a WebSocket made the daemon panic", "panic", p, "stack", string(debug.Stack()))
			t.leave()
		}
	}()
	t.send(t.ahead)
	t.ahead = nil
	for {
		until := time.Now().Add(24 * time.Hour)
		if t.idle > 0 {
			until = time.Unix(0, t.moved.Load()).Add(t.idle)
		}
		if !t.until.IsZero() && t.until.Before(until) {
			until = t.until
		}
		t.step.Store(waits)
		t.conn.AwaitMore(until, wait, func(came bool) {
			t.came = came
			if !t.step.CompareAndSwap(waits, waited) && t.goesOn(until) {
				t.fromClient(patience)
			}
		})
		if t.step.CompareAndSwap(waits, isHanded) || !t.goesOn(until) {
			return
		}
		wait = patience
	}
}

// goesOn passes on what has come when a wait is over. It returns false if the tunnel ends.
func (t *tunnel) goesOn(until time.Time) bool {
	switch {
	case !t.until.IsZero() && !time.Now().Before(t.until):
		t.late.Store(true)
	case t.came:
		return t.pass()
	case time.Now().Before(until): // the client has left, or the wait has ended early: a read shows it
		_ = t.conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		return t.pass()
	case t.idle > 0 && time.Since(time.Unix(0, t.moved.Load())) >= t.idle:
		t.idled.Store(true)
	default: // the worker has sent something meanwhile
		return true
	}
	t.leave()
	return false
}

// pass passes on what the client has sent. It returns false if the tunnel ends.
func (t *tunnel) pass() bool {
	piece := largePieces.Get().(*[]byte)
	defer largePieces.Put(piece)
	n, err := t.conn.Read(*piece)
	switch {
	case n == 0 && errors.Is(err, os.ErrDeadlineExceeded): // the wait has ended early
		return true
	case n == 0:
		if t.to.closed.Load() {
			time.Sleep(closeWait)
		}
		t.leave()
		return false
	}
	if t.conn.IsTLS() { // the wait took one byte, and the rest of its record is in memory
		_ = t.conn.SetReadDeadline(time.Unix(1, 0))
		more, _ := t.conn.Read((*piece)[n:])
		n += more
	}
	t.moved.Store(time.Now().UnixNano())
	t.send((*piece)[:n])
	return true
}

// send sends bytes of the client to the worker. A worker that does not take them ends the tunnel.
func (t *tunnel) send(b []byte) {
	if len(b) == 0 {
		return
	}
	_ = t.up.SetWriteDeadline(time.Now().Add(workerTakes))
	if _, err := t.up.Write(b); err != nil {
		_ = t.up.SetReadDeadline(time.Unix(1, 0))
	}
}

// opClose is the opcode of a close frame.
const opClose = 8

// frames follows where the frames of a WebSocket end (RFC 6455, section 5.2).
type frames struct {
	head   [14]byte
	n      int         // bytes of head
	left   uint64      // of the frame's payload
	closed atomic.Bool // a close frame has begun
}

// pass takes the bytes that come next.
func (f *frames) pass(p []byte) {
	for len(p) > 0 {
		if f.left > 0 {
			n := min(f.left, uint64(len(p)))
			f.left -= n
			p = p[n:]
			continue
		}
		f.head[f.n] = p[0]
		f.n++
		p = p[1:]
		f.takeHead()
	}
}

// takeHead begins the frame's payload, if its head is whole.
func (f *frames) takeHead() {
	if f.n < 2 {
		return
	}
	size, length := 2, uint64(f.head[1]&0x7f)
	switch length {
	case 126:
		size = 4
	case 127:
		size = 10
	}
	masked := int(f.head[1]>>7) * 4
	if f.n < size+masked {
		return
	}
	switch size {
	case 4:
		length = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 10:
		length = binary.BigEndian.Uint64(f.head[2:])
	}
	f.left, f.n = length, 0
	if f.head[0]&0xf == opClose {
		f.closed.Store(true)
	}
}

// whole reports whether no frame is under way.
func (f *frames) whole() bool { return f.n == 0 && f.left == 0 }
