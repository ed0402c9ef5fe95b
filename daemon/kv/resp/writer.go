package resp

import (
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/transport/socket"
)

const (
	flushAt   = 32 << 10         // replies to pipelined commands are gathered up to this size
	copyBelow = 16 << 10         // shorter values are copied among the replies: one write for many
	stallTime = 60 * time.Second // a client that takes no byte of a reply for one to two times this is given up
	leastRate = 1 << 20          // bytes a second that a client must take of a long reply after that
)

// writer gathers replies.
type writer struct {
	conn  net.Conn
	out   []byte
	list  [][]byte  // of the last reply, kept for its memory
	until time.Time // the write deadline in force
	resp3 bool
	sent  *atomic.Uint64 // bytes
}

var crlf = []byte("\r\n")

func (w *writer) text(s string) { w.out = append(w.out, s...) }

func (w *writer) line(mark byte, s string) {
	w.out = append(w.out, mark)
	w.out = append(w.out, s...)
	w.out = append(w.out, '\r', '\n')
}

func (w *writer) ok()             { w.text("+OK\r\n") }
func (w *writer) fail(s string)   { w.line('-', s) }
func (w *writer) number(n int64)  { w.line(':', strconv.FormatInt(n, 10)) }
func (w *writer) array(n int)     { w.line('*', strconv.Itoa(n)) }
func (w *writer) length(n int64)  { w.line('$', strconv.FormatInt(n, 10)) }
func (w *writer) status(s string) { w.line('+', s) }

// pairs begins a map; before RESP3 that is a list.
func (w *writer) pairs(n int) {
	if w.resp3 {
		w.line('%', strconv.Itoa(n))
		return
	}
	w.array(2 * n)
}

// null writes the reply for a missing value.
func (w *writer) null() {
	if w.resp3 {
		w.text("_\r\n")
		return
	}
	w.text("$-1\r\n")
}

func (w *writer) bulk(s string) {
	w.length(int64(len(s)))
	w.out = append(w.out, s...)
	w.text("\r\n")
}

// value writes a value of n bytes from where it lies.
func (w *writer) value(n int64, pieces [][]byte) error {
	w.length(n)
	if n < copyBelow {
		for _, p := range pieces {
			w.out = append(w.out, p...)
		}
		w.text("\r\n")
		return w.flushIf(flushAt)
	}
	w.list = append(append(append(w.list[:0], w.out), pieces...), crlf)
	err := w.send(w.list)
	clear(w.list)
	w.out = w.out[:0]
	return err
}

// flushIf sends the gathered replies if they have at least n bytes.
func (w *writer) flushIf(n int) error {
	if len(w.out) < n || len(w.out) == 0 {
		return nil
	}
	w.list = append(w.list[:0], w.out)
	err := w.send(w.list)
	w.out = w.out[:0]
	if cap(w.out) > 4*flushAt {
		w.out = nil
	}
	return err
}

// send writes pieces. It sends a long reply with one call that Go's scheduler is informed of: in steps of 128 KiB it
// cost twice as much.
func (w *writer) send(list [][]byte) error {
	total := int64(0)
	for _, p := range list {
		total += int64(len(p))
	}
	if err := w.deadline(total); err != nil {
		return err
	}
	if len(list) == 1 {
		sent, err := w.conn.Write(list[0])
		w.sent.Add(uint64(sent))
		return err
	}
	buffers := net.Buffers(list)
	var to io.Writer = w.conn
	if plain, ok := to.(*socket.Conn); ok {
		to = plain.TCPConn
	}
	sent, err := buffers.WriteTo(to)
	w.sent.Add(uint64(sent))
	return err
}

// deadline sets the client's time for a reply of n bytes, unless the last deadline leaves as much.
func (w *writer) deadline(n int64) error {
	now := time.Now()
	least := stallTime + time.Duration(n/leastRate)*time.Second
	if w.until.Sub(now) >= least {
		return nil
	}
	w.until = now.Add(least + stallTime)
	return w.conn.SetWriteDeadline(w.until)
}
