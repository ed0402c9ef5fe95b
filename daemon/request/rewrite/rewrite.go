// Package rewrite changes values in the JSON of an answer while a client reads it: byte by byte, wherever the answer is
// cut, and without holding anything back.
//
// An answer is one JSON text, or a stream of server-sent events with a text each. What stands outside of these texts
// goes on as it is. encoding/json would hold each event until its end, and write its numbers, spaces and order of keys
// anew.
package rewrite

import "io"

// Editor changes one JSON text.
type Editor interface {
	// Append appends what the client gets for the next byte of the text.
	Append(out []byte, c byte) []byte
	// Reset begins another text.
	Reset()
}

// Reader reads an answer as an editor changes it.
type Reader struct {
	from   io.Reader
	editor Editor
	events bool // the answer is a stream of server-sent events

	line int    // events: bytes of the line that were compared with "data:"; -1 = it is another line
	cr   bool   // events: the last byte was the CR of a line's end
	rest []byte // of the last piece, which is still to be read
	room []byte // for pieces, of the size that the caller reads
	err  error  // what comes behind rest
}

// NewReader makes a reader. events: the answer is a stream of server-sent events.
func NewReader(from io.Reader, e Editor, events bool) *Reader {
	return &Reader{from: from, editor: e, events: events}
}

const dataField = "data:"

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if len(p) == 0 {
			return 0, nil
		}
		r.fill(p)
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	if len(r.rest) == 0 && r.err != nil {
		return n, r.err
	}
	return n, nil
}

// fill reads the next piece into the caller's memory, and makes rest of it.
func (r *Reader) fill(p []byte) {
	n, err := r.from.Read(p)
	r.err = err
	r.rest = r.append(r.room[:0], p[:n])
	r.room = r.rest
}

// append appends a piece of the answer as the client gets it.
func (r *Reader) append(out, piece []byte) []byte {
	for _, c := range piece {
		if r.events && !r.inData(c) {
			out = append(out, c)
		} else {
			out = r.editor.Append(out, c)
		}
	}
	return out
}

// inData reports whether a byte of a stream belongs to the JSON of an event. That may stand on several lines of data,
// and ends with an empty line.
func (r *Reader) inData(c byte) bool {
	if c == '\n' && r.cr {
		r.cr = false
		return false
	}
	r.cr = c == '\r'
	switch {
	case c == '\n' || c == '\r':
		if r.line == 0 {
			r.editor.Reset()
		}
		r.line = 0
		return false
	case r.line == len(dataField):
		return true
	case r.line >= 0 && c == dataField[r.line]:
		r.line++
	default:
		r.line = -1
	}
	return false
}
