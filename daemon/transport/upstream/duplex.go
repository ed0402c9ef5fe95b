package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// pieceSize bounds how much of a Tail is held at a time.
const pieceSize = 32 << 10

// pieceFrame is the room before a piece for its chunk size: 5 hex digits and CR LF.
const pieceFrame = 8

var pieces = sync.Pool{New: func() any { return new([pieceFrame + pieceSize + 2]byte) }}

var longAgo = time.Unix(1, 0)

// lastWords is how long exchange waits for an answer after sending failed. The answer can only be here already: a
// worker that refused early and closed has sent its reason.
const lastWords = time.Second

// upload sends a long request.
type upload struct {
	conn    *conn
	request *Request
	pause   time.Duration // for the worker to take a piece; the client's speed bounds the whole
	stopped atomic.Bool
}

// exchange sends the request while readHead waits for the answer, which may come early: a refusal. A second goroutine
// reads, so that only the caller's own reads Tail. whole is false if not all of the request was sent.
func (u *upload) exchange(wait time.Duration, readHead func() error) (whole bool, err error) {
	cn := u.conn
	cn.net.SetReadDeadline(time.Time{}) // there is nothing to wait for before it is sent
	answered := make(chan error, 1)
	go func() {
		err := readHead()
		u.stop()
		answered <- err
	}()
	sendErr := u.run()
	switch {
	case sendErr == nil:
		cn.net.SetReadDeadline(time.Now().Add(wait))
	case errors.Is(sendErr, ErrTail) && !u.stopped.Load():
		cn.net.SetReadDeadline(longAgo)
	default: // the worker closed, or answers already
		cn.net.SetReadDeadline(time.Now().Add(lastWords))
	}
	err = <-answered
	cn.deadline = time.Time{} // set above, not by arm
	if err != nil && sendErr != nil && sendErr != errStopped {
		err = sendErr
	}
	return sendErr == nil, err
}

// errStopped ends an upload whose answer has begun, or whose connection has failed for the reader.
var errStopped = errors.New("stopped")

// stop makes run return. In this order: run sets a deadline and then looks at stopped, so it sees one or the other.
func (u *upload) stop() {
	u.stopped.Store(true)
	u.conn.net.SetWriteDeadline(longAgo)
}

// write sends a piece within u.pause.
func (u *upload) write(send func() error) error {
	u.conn.net.SetWriteDeadline(time.Now().Add(u.pause))
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

// maxOpening is how much of Body is sent with the head, by one write: what a deadline for a piece is meant for.
const maxOpening = 8 << 20

// cutBody makes the end of a long Body the beginning of Tail, which is sent in pieces.
func (u *upload) cutBody() {
	if len(u.request.Body) <= maxOpening {
		return
	}
	r := *u.request
	rest := bytes.NewReader(r.Body[maxOpening:])
	r.Body = r.Body[:maxOpening]
	switch {
	case r.Tail == nil:
		r.Tail, r.TailLength = rest, rest.Size()
	case r.TailLength >= 0:
		r.Tail, r.TailLength = io.MultiReader(rest, r.Tail), r.TailLength+rest.Size()
	default:
		r.Tail = io.MultiReader(rest, r.Tail)
	}
	u.request = &r
}

// run sends the whole request.
func (u *upload) run() error {
	u.cutBody()
	err := u.write(func() error { return u.conn.sendHead(u.request) })
	if err != nil || u.request.Tail == nil {
		return err
	}
	piece := pieces.Get().(*[pieceFrame + pieceSize + 2]byte)
	defer pieces.Put(piece)
	for left := u.request.TailLength; left != 0; {
		room := piece[pieceFrame : pieceFrame+pieceSize]
		if left > 0 {
			room = room[:min(int64(len(room)), left)]
		}
		n, rerr := u.request.Tail.Read(room)
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

// frame returns the piece as it is sent: as a chunk if the length of all is not known.
func (u *upload) frame(piece *[pieceFrame + pieceSize + 2]byte, n int) []byte {
	if !u.request.chunkedBody() {
		return piece[pieceFrame : pieceFrame+n]
	}
	var size [pieceFrame]byte
	line := append(strconv.AppendInt(size[:0], int64(n), 16), "\r\n"...)
	start := pieceFrame - len(line)
	copy(piece[start:], line)
	end := pieceFrame + n
	copy(piece[end:], "\r\n")
	return piece[start : end+2]
}
