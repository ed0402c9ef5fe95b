package resp

import (
	"net"
	"strconv"
	"time"
)

const (
	flushAt   = 64 << 10         // replies of pipelined commands are gathered up to here
	copyBelow = 16 << 10         // shorter values are copied among the replies: one write for many of them
	stallTime = 60 * time.Second // a client that takes nothing of a reply for so long is given up
	leastRate = 1 << 20          // bytes a second that a client must take of a long reply, after that
)

// writer gathers replies.
type writer struct {
	conn  net.Conn
	out   []byte
	resp3 bool
	sent  func(n int64)
}

func (w *writer) raw(s string) { w.out = append(w.out, s...) }

func (w *writer) line(mark byte, s string) {
	w.out = append(w.out, mark)
	w.out = append(w.out, s...)
	w.out = append(w.out, '\r', '\n')
}

func (w *writer) ok()             { w.raw("+OK\r\n") }
func (w *writer) fail(s string)   { w.line('-', s) }
func (w *writer) number(n int64)  { w.line(':', strconv.FormatInt(n, 10)) }
func (w *writer) array(n int)     { w.line('*', strconv.Itoa(n)) }
func (w *writer) length(n int64)  { w.line('$', strconv.FormatInt(n, 10)) }
func (w *writer) status(s string) { w.line('+', s) }

// pairs begins a map; before RESP3 it is a list.
func (w *writer) pairs(n int) {
	if w.resp3 {
		w.line('%', strconv.Itoa(n))
		return
	}
	w.array(2 * n)
}

// null is the reply for what is not there.
func (w *writer) null() {
	if w.resp3 {
		w.raw("_\r\n")
		return
	}
	w.raw("$-1\r\n")
}

func (w *writer) bulk(s string) {
	w.length(int64(len(s)))
	w.out = append(w.out, s...)
	w.raw("\r\n")
}

// value writes a value of n bytes from where it lies.
func (w *writer) value(n int64, pieces [][]byte) error {
	w.length(n)
	if n < copyBelow {
		for _, p := range pieces {
			w.out = append(w.out, p...)
		}
		w.raw("\r\n")
		return w.flushIf(flushAt)
	}
	list := make(net.Buffers, 0, len(pieces)+2)
	list = append(list, w.out)
	list = append(list, pieces...)
	list = append(list, []byte("\r\n"))
	if err := w.deadline(n); err != nil {
		return err
	}
	sent, err := list.WriteTo(w.conn)
	w.sent(sent)
	w.out = w.out[:0]
	return err
}

// flushIf sends the replies if they have so many bytes.
func (w *writer) flushIf(n int) error {
	if len(w.out) < n || len(w.out) == 0 {
		return nil
	}
	if err := w.deadline(int64(len(w.out))); err != nil {
		return err
	}
	sent, err := w.conn.Write(w.out)
	w.sent(int64(sent))
	w.out = w.out[:0]
	if cap(w.out) > 4*flushAt {
		w.out = nil
	}
	return err
}

func (w *writer) deadline(n int64) error {
	return w.conn.SetWriteDeadline(time.Now().Add(stallTime + time.Duration(n/leastRate)*time.Second))
}
