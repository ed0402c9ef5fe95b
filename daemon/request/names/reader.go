package names

import "io"

// Reader reads an answer and writes a name in place of each model's. It may be cut anywhere between two reads. It holds
// nothing back.
type Reader struct {
	from   io.Reader
	name   string
	events bool // the answer is a stream of server-sent events
	s      scanner

	line int    // events: bytes of the line that were compared with "data:"; -1 = it is another line
	cr   bool   // events: the last byte was the CR of a line's end
	rest []byte // of the last piece, which is still to be read
	room []byte // for pieces, of the size that the caller reads
	err  error  // what comes behind rest
}

// NewReader makes a reader. events: the answer is a stream of server-sent events.
func NewReader(from io.Reader, name string, events bool) *Reader {
	return &Reader{from: from, name: name, events: events, s: scanner{nested: events}}
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
			continue
		}
		switch r.s.next(c) {
		case opens:
			out = append(append(out, c), r.name...)
		case inside: // the worker's name
		default:
			out = append(out, c)
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
			r.s = scanner{nested: true}
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
