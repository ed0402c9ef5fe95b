package listen

import (
	"bytes"
	"errors"
)

// BareLF is the message for a head that ends in a bare line feed, and the remedy.
const BareLF = "the head of a request ends in a line feed alone; end its lines with CR LF"

// errBareLF is a read's error in place of a wait for the rest of a head that has ended already.
var errBareLF = errors.New("listen: " + BareLF)

// head follows the bytes of a request's head. fasthttp ends a head at CR LF CR LF alone, but takes a line that ends in
// LF. If a head ends in LF LF, as some hand-written client sends it, fasthttp would wait until the read timeout. The
// next read fails at once instead. The zero value stands before a head. One goroutine at a time uses it, as with reads.
type head struct {
	over bool // the end has passed; what comes is a body
	bare bool // it has ended, but not as fasthttp needs it

	text bool // the request line has begun; blank lines may stand before it
	line bool // the line under way has a byte
	cr   bool // the last byte was CR
	crlf bool // the line before ended in CR LF
}

// note follows the bytes of one read.
func (h *head) note(b []byte) {
	if h.over || h.bare {
		return
	}
	if !h.text && bytes.Contains(b, []byte("\r\n\r\n")) && b[0] > ' ' { // nearly always: all in one piece
		h.over = true
		return
	}
	for i, c := range b {
		switch {
		case c == '\r':
			if h.cr { // the one before was no part of a line's end
				h.text = true
				h.line = true
			}
			h.cr = true
			continue
		case c != '\n':
			h.text = true
			h.line = true
		case h.line: // the end of a line
			h.crlf = h.cr
			h.line = false
		case !h.text: // a blank line before the request
		case h.cr && h.crlf:
			h.over = true
			return
		default:
			h.bare = !bytes.Contains(b[i:], []byte("\r\n\r\n")) // then fasthttp reads on to there, and the daemon refuses it
			h.over = !h.bare
			return
		}
		h.cr = false
	}
}
