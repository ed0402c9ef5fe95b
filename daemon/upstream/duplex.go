package upstream

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// pieceSize is how much of a Tail is held at a time.
const pieceSize = 32 << 10

// pieceFrame is the room before a piece for its chunk size: 5 hex digits and CR LF.
const pieceFrame = 8

var pieces = sync.Pool{New: func() any { return new([pieceFrame + pieceSize + 2]byte) }}

var longAgo = time.Unix(1, 0)

// duplex sends a long request while it listens for the answer, which may come early: a refusal. Reading is the second
// goroutine's, so that Tail is read by the caller's alone.
func (x *Response) duplex(cn *conn, r *Request, wait time.Duration) error {
	cn.net.SetReadDeadline(time.Time{}) // there is nothing to wait for before it is sent
	up := &upload{conn: cn, r: r}
	answered := make(chan error, 1)
	go func() {
		err := x.readHead(cn, r.Method == "HEAD")
		up.stop()
		answered <- err
	}()
	sent := up.run()
	switch {
	case sent == nil:
		cn.net.SetReadDeadline(time.Now().Add(wait))
	case errors.Is(sent, ErrTail) && !up.stopped.Load():
		cn.net.SetReadDeadline(longAgo)
	default: // the worker closed, or answers already
		cn.net.SetReadDeadline(time.Now().Add(lastWords))
	}
	err := <-answered
	cn.deadline = time.Time{} // set above, not by arm
	if err == nil {
		x.keep = x.keep && sent == nil
		return nil
	}
	if sent != nil && sent != errStopped {
		return sent
	}
	return err
}

// upload is a long request on its way.
type upload struct {
	conn    *conn
	r       *Request
	stopped atomic.Bool
}

// errStopped ends an upload whose answer has begun, or whose connection has failed for the reader.
var errStopped = errors.New("stopped")

// stop makes run return. In this order: run sets a deadline and then looks at stopped, so it sees one or the other.
func (u *upload) stop() {
	u.stopped.Store(true)
	u.conn.net.SetWriteDeadline(longAgo)
}

// write gives the worker Config.ChunkTimeout for each piece, as the client's speed bounds the whole.
func (u *upload) write(send func() error) error {
	u.conn.net.SetWriteDeadline(time.Now().Add(u.conn.client.config.ChunkTimeout))
	if u.stopped.Load() {
		return errStopped
	}
	err := send()
	switch {
	case err == nil:
		return nil
	case u.stopped.Load():
		return errStopped
	case isTimeout(err):
		return fmt.Errorf("%w: %w", ErrStalled, err)
	}
	return err
}

// run sends the whole request.
func (u *upload) run() error {
	err := u.write(func() error { return sendHead(u.conn, u.r) })
	if err != nil || u.r.Tail == nil {
		return err
	}
	piece := pieces.Get().(*[pieceFrame + pieceSize + 2]byte)
	defer pieces.Put(piece)
	for left := u.r.TailLength; left != 0; {
		room := piece[pieceFrame : pieceFrame+pieceSize]
		if left > 0 {
			room = room[:min(int64(len(room)), left)]
		}
		n, rerr := u.r.Tail.Read(room)
		if n > 0 {
			if err := u.write(func() error { return u.conn.write(u.frame(piece, n), nil) }); err != nil {
				return err
			}
			left -= int64(min(n, int(max(left, 0)))) // an unknown length stays -1
		}
		if rerr == io.EOF && left < 0 {
			return u.write(func() error { return u.conn.write(lastChunk, nil) })
		}
		if rerr != nil && left != 0 {
			return fmt.Errorf("%w: %w", ErrTail, early(rerr))
		}
	}
	return nil
}

var lastChunk = []byte("0\r\n\r\n")

// frame is the piece as it is sent: as a chunk if the length of all is not known.
func (u *upload) frame(piece *[pieceFrame + pieceSize + 2]byte, n int) []byte {
	if !u.r.chunkedBody() {
		return piece[pieceFrame : pieceFrame+n]
	}
	var size [pieceFrame]byte
	line := append(strconv.AppendInt(size[:0], int64(n), 16), "\r\n"...)
	start := pieceFrame - len(line)
	copy(piece[start:], line)
	end := pieceFrame + n
	piece[end], piece[end+1] = '\r', '\n'
	return piece[start : end+2]
}
