// Package rewrite changes values in the JSON of an answer while a client reads it, wherever the answer is
// cut, and without holding anything back.
//
// An answer is one JSON text, or a stream of server-sent events with a text each. Bytes outside of these texts are
// passed on unchanged. encoding/json would hold each event until its end, and write its numbers, spaces and order of
// keys anew.
package rewrite

import (
	"io"

	"github.com/warmpath/warmpath/daemon/request/sse"
)

// Editor changes one JSON text.
type Editor interface {
	// Append appends what the client gets for the next bytes of the text.
	Append(out, p []byte) []byte
	// Reset begins another text.
	Reset()
}

// Reader reads an answer as an editor changes it.
type Reader struct {
	from   io.Reader
	editor Editor
	events bool // the answer is a stream of server-sent events

	data sse.Data
	rest []byte // of the last piece, which is still to be read
	room []byte // for pieces, of the size that the caller reads
	err  error  // what comes behind rest
}

// NewReader makes a reader. events: the answer is a stream of server-sent events.
func NewReader(from io.Reader, e Editor, events bool) *Reader {
	return &Reader{from: from, editor: e, events: events}
}

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
	if !r.events {
		return r.editor.Append(out, piece)
	}
	for len(piece) > 0 {
		n, data, ends := r.data.Next(piece)
		if data {
			out = r.editor.Append(out, piece[:n])
		} else {
			out = append(out, piece[:n]...)
		}
		if ends {
			r.editor.Reset()
		}
		piece = piece[n:]
	}
	return out
}
